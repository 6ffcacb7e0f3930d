"""Finds the coefficients in csrc/simd/vec_math.inl.h: minimax fits by Lawson's iteratively reweighted least squares.

    python tools/fit_polynomials.py

Prints each polynomial from the highest power down, as Horner's rule takes it, and its largest weighted error in exact arithmetic.
"""

import numpy as np
from scipy.special import erfcx


def minimax(x, target, weight, degree, rounds=600):
    """Coefficients, constant first, of the polynomial whose largest weight * |error| over the points x is smallest, and that error."""
    powers = np.vander(x, degree + 1, increasing=True)
    share = np.full(len(x), 1 / len(x))
    best = np.inf, None
    for _ in range(rounds):
        root = np.sqrt(share) * weight
        coefficients = np.linalg.lstsq(powers * root[:, None], target * root, rcond=None)[0]
        error = np.abs(powers @ coefficients - target) * weight
        best = min(best, (error.max(), tuple(coefficients)))
        share *= error
        share /= share.sum()
    return best[1], best[0]


def exponential():
    """q of exp(r) = 1 + r + r^2 q(r) for |r| <= ln 2 / 2; the error is relative to exp(r)."""
    r = np.cos(np.pi * (np.arange(4000) + 0.5) / 4000) * np.log(2) / 2 * 1.0005
    q = np.where(np.abs(r) < 1e-3, 0.5 + r / 6 + r**2 / 24 + r**3 / 120, (np.expm1(r) / r - 1) / r)
    return minimax(r, q, r**2 / np.exp(r), 4)


def normal_tail():
    """R of Phi(-t) = exp(-t^2 / 2) R(1 / (1 + 0.3 t)) for t >= 0; the error is that of t Phi(-t), and a little of R's own."""
    t = np.concatenate([np.linspace(0, 6, 6000), np.linspace(6, 14, 500)])
    weight = np.maximum(t, 0.05) * np.exp(-(t**2) / 2) + 1e-4
    return minimax(1 / (1 + 0.3 * t), 0.5 * erfcx(t / np.sqrt(2)), weight, 6)


def main():
    for fit in (exponential, normal_tail):
        coefficients, error = fit()
        print(f"{fit.__name__}: {', '.join(f'{c:.9g}f' for c in reversed(coefficients))}  (error {error:.1e})")


if __name__ == "__main__":
    main()
