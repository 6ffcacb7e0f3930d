/* Weights to eight or four bits, once at load, VF groups at a time, one group a lane. Scales and minima are rounded to float16 before codes are made, so
   that packing them is exact:
     CYG_I8, CYG_I8H  scale = max|w| / 127 rounded up to float16: nothing is clipped, and where small scales run out of bits the step grows by at most 2^-24,
                      so that the result is about as fine as the weights themselves would be in float16
     CYG_I4           codes q - 8 in -8..7; of a few scales the one with the least squared error, which for codes c is sum(w c) / sum(c c)
     CYG_I4M          of a few widths of the range the one whose least-squares line through (code, weight) has the least squared error
   then codes are the nearest to the rounded scale and minimum. A group with NaN or infinity gets the scale NaN. */

#define FIT_STEPS 13 /* scales tried per group, in FIT_STRIDE of a code around the one that spans the range */
#define FIT_STRIDE 0.15f

/* Zero if all lanes' values so far are finite, NaN otherwise. */
CYG_INLINE vf not_finite(vf found, vf value) { return vf_fma(value, vf_zero(), found); }

CYG_INLINE vf clamp(vf value, float low, float high) { return vf_min(vf_max(value, vf_set1(low)), vf_set1(high)); }

/* VF groups of `count` weights, one a lane, and what is found for them. */
struct fit {
    int count;
    float w[CYG_GROUP][VF];
    float codes[CYG_GROUP][VF];
    float scale[VF], minimum[VF];
};

CYG_INLINE void round_f16(float *value) {
    for (int i = 0; i < VF; i++) value[i] = f16_widen(f16_narrow(value[i]));
}

/* A scale of zero or NaN gives codes of zero. */
CYG_INLINE vf codes_for(vf w, vf scale, float low, float high) {
    const vf code = clamp(vf_round(clamp(vf_div(w, scale), low - 1, high + 1)), low, high);
    return vf_select(vf_lt(vf_zero(), vf_mul(scale, scale)), code, vf_zero());
}

static void fit_i8(struct fit *fit) {
    vf largest = vf_zero(), found = vf_zero();
    for (int i = 0; i < fit->count; i++) {
        largest = vf_max(largest, vf_abs(vf_load(fit->w[i])));
        found = not_finite(found, vf_load(fit->w[i]));
    }
    vf_store(fit->scale, vf_add(vf_div(largest, vf_set1(127)), found));
    for (int i = 0; i < VF; i++) {
        const uint16_t half = f16_narrow(fit->scale[i]);
        fit->scale[i] = f16_widen(f16_widen(half) < fit->scale[i] ? half + 1 : half);
    }
    for (int i = 0; i < fit->count; i++) vf_store(fit->codes[i], codes_for(vf_load(fit->w[i]), vf_load(fit->scale), -127, 127));
}

static void fit_i4(struct fit *fit) {
    vf largest = vf_zero(), found = vf_zero(); /* the weight of largest magnitude, with its sign */
    for (int i = 0; i < fit->count; i++) {
        const vf w = vf_load(fit->w[i]);
        largest = vf_select(vf_lt(vf_abs(largest), vf_abs(w)), w, largest);
        found = not_finite(found, w);
    }
    vf best_scale = vf_div(largest, vf_set1(-8)), best_gain = vf_zero();
    for (int step = 0; step < FIT_STEPS; step++) {
        const vf inverse = vf_div(vf_set1(-8 + FIT_STRIDE * (float)(step - FIT_STEPS / 2)), largest);
        vf wc = vf_zero(), cc = vf_zero();
        for (int i = 0; i < fit->count; i++) {
            const vf w = vf_load(fit->w[i]), code = clamp(vf_round(vf_mul(w, inverse)), -8, 7);
            wc = vf_fma(w, code, wc);
            cc = vf_fma(code, code, cc);
        }
        const vf gain = vf_div(vf_mul(wc, wc), cc); /* how much sum(w w) this scale explains; NaN for a group of zeros */
        const vm better = vf_lt(best_gain, gain);
        best_gain = vf_select(better, gain, best_gain);
        best_scale = vf_select(better, vf_div(wc, cc), best_scale);
    }
    vf_store(fit->scale, vf_add(best_scale, found));
    round_f16(fit->scale);
    for (int i = 0; i < fit->count; i++) vf_store(fit->codes[i], vf_add(codes_for(vf_load(fit->w[i]), vf_load(fit->scale), -8, 7), vf_set1(8)));
}

static void fit_i4m(struct fit *fit) {
    const vf count = vf_set1((float)fit->count);
    vf low = vf_load(fit->w[0]), high = low, found = vf_zero(), sum_w = vf_zero(), sum_ww = vf_zero();
    for (int i = 0; i < fit->count; i++) {
        const vf w = vf_load(fit->w[i]);
        low = vf_min(low, w);
        high = vf_max(high, w);
        found = not_finite(found, w);
    }
    for (int i = 0; i < fit->count; i++) { /* from here on w is counted from the lowest, so that squares do not cancel */
        const vf w = vf_sub(vf_load(fit->w[i]), low);
        sum_w = vf_add(sum_w, w);
        sum_ww = vf_fma(w, w, sum_ww);
    }
    found = not_finite(found, sum_ww); /* far beyond what a float16 scale can hold */
    vf best_scale = vf_zero(), best_minimum = vf_zero(), best_error = vf_add(sum_ww, vf_set1(1e-30f));
    for (int step = 0; step < FIT_STEPS; step++) {
        const vf inverse = vf_div(vf_set1(15 + FIT_STRIDE * (float)(step - FIT_STEPS / 2)), vf_sub(high, low));
        vf c1 = vf_zero(), cc = vf_zero(), wc = vf_zero();
        for (int i = 0; i < fit->count; i++) {
            const vf w = vf_sub(vf_load(fit->w[i]), low), code = clamp(vf_round(vf_mul(w, inverse)), 0, 15);
            c1 = vf_add(c1, code);
            cc = vf_fma(code, code, cc);
            wc = vf_fma(w, code, wc);
        }
        const vf determinant = vf_sub(vf_mul(count, cc), vf_mul(c1, c1));
        const vf scale = vf_div(vf_sub(vf_mul(count, wc), vf_mul(sum_w, c1)), determinant);
        const vf minimum = vf_div(vf_sub(vf_mul(cc, sum_w), vf_mul(c1, wc)), determinant);
        const vf error = vf_fnma(minimum, sum_w, vf_fnma(scale, wc, sum_ww)); /* NaN if all weights are equal */
        const vm better = vf_lt(error, best_error);
        best_error = vf_select(better, error, best_error);
        best_scale = vf_select(better, scale, best_scale);
        best_minimum = vf_select(better, minimum, best_minimum);
    }
    vf_store(fit->scale, vf_add(best_scale, found));
    vf_store(fit->minimum, vf_add(vf_add(best_minimum, low), found));
    round_f16(fit->scale);
    round_f16(fit->minimum);
    for (int i = 0; i < fit->count; i++)
        vf_store(fit->codes[i], codes_for(vf_sub(vf_load(fit->w[i]), vf_load(fit->minimum)), vf_load(fit->scale), 0, 15));
}

static void quantize_weights(enum cyg_weight_kind kind, const float *w, int64_t ldw, int64_t rows, int64_t k, uint8_t *codes, float *scales,
                             float *minima) {
    const int64_t groups = groups_of(k), whole = k / CYG_GROUP;
    struct fit fit = {0};
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t g = 0; g < groups;) {
            const int64_t lanes = g == whole ? 1 : whole - g < VF ? whole - g : VF, first = row * k + g * CYG_GROUP;
            fit.count = g == whole ? (int)(k % CYG_GROUP) : CYG_GROUP;
            for (int64_t lane = 0; lane < VF; lane++) /* spare lanes repeat a group */
                for (int i = 0; i < fit.count; i++) fit.w[i][lane] = w[row * ldw + (g + (lane < lanes ? lane : 0)) * CYG_GROUP + i];
            if (in_hadamard_basis(kind, fit.count)) {
                hadamard_many(fit.w);
                for (int i = 0; i < CYG_GROUP; i++) vf_store(fit.w[i], vf_mul(vf_load(fit.w[i]), vf_set1(HADAMARD_ROOT)));
            }
            if (is_i8(kind)) fit_i8(&fit);
            else if (kind == CYG_I4) fit_i4(&fit);
            else fit_i4m(&fit);
            for (int64_t lane = 0; lane < lanes; lane++) {
                scales[row * groups + g + lane] = fit.scale[lane];
                if (kind == CYG_I4M) minima[row * groups + g + lane] = fit.minimum[lane];
                for (int i = 0; i < fit.count; i++) codes[first + lane * CYG_GROUP + i] = (uint8_t)(int)fit.codes[i][lane];
            }
            g += lanes;
        }
    }
}
