/* The Hadamard transform of a group of CYG_GROUP numbers, without its factor HADAMARD_ROOT = 1 / sqrt(CYG_GROUP).

   With the factor it is orthonormal and its own inverse, so that x . w = (H x) . (H w). It spreads a number that stands out over its whole group: what
   is rounded to a few bits afterwards loses less (QuaRot, Ashkboos et al. 2024). Sums and differences of numbers 16, 8, 4, 2 and 1 places apart, in
   this order in all tables. */

#define GROUP_VECTORS (CYG_GROUP / VF)
#define HADAMARD_ROOT 0.176776695f

static const float hadamard_signs[4][16] = {
    {1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1},
    {1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1},
    {1, 1, 1, 1, -1, -1, -1, -1, 1, 1, 1, 1, -1, -1, -1, -1},
    {1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1, -1},
};

/* The last steps, within a vector: every lane meets the one `stride` away. */
CYG_INLINE void hadamard_lanes(vf group[GROUP_VECTORS], int stride, const float *signs) {
    if (stride >= VF) return;
    UNROLL for (int i = 0; i < GROUP_VECTORS; i++) group[i] = vf_fma(group[i], vf_load(signs), vf_swap(group[i], stride));
}

/* One group, side by side in vectors. */
CYG_INLINE void hadamard_group(vf group[GROUP_VECTORS]) {
    UNROLL for (int stride = GROUP_VECTORS / 2; stride > 0; stride /= 2) {
        UNROLL for (int i = 0; i < GROUP_VECTORS; i++) {
            if (i & stride) continue;
            const vf a = group[i], b = group[i + stride];
            group[i] = vf_add(a, b);
            group[i + stride] = vf_sub(a, b);
        }
    }
    hadamard_lanes(group, 8, hadamard_signs[3]);
    hadamard_lanes(group, 4, hadamard_signs[2]);
    hadamard_lanes(group, 2, hadamard_signs[1]);
    hadamard_lanes(group, 1, hadamard_signs[0]);
}

/* VF groups, one a lane. */
static void hadamard_many(float group[CYG_GROUP][VF]) {
    for (int stride = CYG_GROUP / 2; stride > 0; stride /= 2) {
        for (int i = 0; i < CYG_GROUP; i++) {
            if (i & stride) continue;
            const vf a = vf_load(group[i]), b = vf_load(group[i + stride]);
            vf_store(group[i], vf_add(a, b));
            vf_store(group[i + stride], vf_sub(a, b));
        }
    }
}

/* One group in memory, in place, with the factor. */
static void hadamard_normal(float *x) {
    vf group[GROUP_VECTORS];
    for (int i = 0; i < GROUP_VECTORS; i++) group[i] = vf_load(x + i * VF);
    hadamard_group(group);
    for (int i = 0; i < GROUP_VECTORS; i++) vf_store(x + i * VF, vf_mul(group[i], vf_set1(HADAMARD_ROOT)));
}
