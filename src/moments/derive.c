/* derive.c -- the scalars of statrec/format.h that follow from a site's vectors
 * (docs/norms.md 18.1-18.3).
 *
 *   dist(a, b) = ||a - b||_2 / d
 *   tid_mean = ||mu_B - mu||_2 / ||sigma||_2     tid_var = ||sigma_B - sigma||_2 / ||sigma||_2
 *
 *   rel_q = ||q_B - q||_2 / ||q||_2      q = sigma2, psi, psi2; for mu and sigma the two above
 *
 * sigma = sqrt(sigma2), without eps. Running values are from before the update.
 *
 * The g_* are the parts of dL/dx due to the batch statistics (PowerNorm paper, ICML 2020, equation
 * 3). They are root mean squares over rows, divided by d. With n valid rows, s = sqrt(batch
 * statistic + eps), Q = statistic / (statistic + eps) = mean of xhat^2:
 *
 *   SIGMA  c_mu  = gamma / s * sum_g / n           g_mu     = ||c_mu||_2 / d
 *          c_sig = gamma / s * sum_gx / n          g_sigma2 = sqrt(sum c_sig^2 Q) / d
 *   PSI    c_psi = gamma / s * sum_gx / n          g_psi2   = sqrt(sum c_psi^2 Q) / d
 *   PN     |nu| / psi * sqrt(Gamma_t)              g_psi2   = its Euclidean norm / d,
 *          psi = sqrt(psi2 + eps): PN subtracts this instead (docs/norms.md 11, 18.2)
 *
 * At sites whose batch statistics are observed, sum_g and sum_gx use SIGMA's xhat for any family.
 * c_mu and c_sig are as above. With psi = sqrt(psi2_B + eps), s = sqrt(sigma2_B + eps):
 *
 *          c_psi = gamma / psi * sum g (x/psi) / n,    sum g x = s sum_gx + mu_B sum_g
 *
 * These formulas are exact with eps inside the root, for methods that follow their family. Such a
 * method divides by s, its sum_gx has x/s or (x - mu_B)/s, and its backward pass is the derivative.
 * Other methods have family OWN and only distances are derived; their host program puts the g_*.
 * Examples are MABN with its averages and the released PN with its second divisor. gamma may
 * include a factor, as BRN's r. Without gamma: gamma = 1.
 */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "statrec/moments.h"

/* Sums over features use LANES partial sums, feature k in lane k mod LANES, and then add halves.
 * This order does not depend on the machine and suits its vector units. */
enum { LANES = 32 };

static double add_lanes(double lane[LANES]) {
    for (int n = LANES / 2; n > 0; n /= 2)
        for (int j = 0; j < n; j++) lane[j] += lane[j + n];
    return lane[0];
}

/* Plain sums of squares: values from float32 tensors are far inside the range of double. */
static double distance(const double *a, const double *b, int64_t d) {
    double lane[LANES] = {0};
    const int64_t whole = d - d % LANES;
    for (int64_t k = 0; k < whole; k += LANES)
        for (int j = 0; j < LANES; j++) {
            const double delta = a[k + j] - b[k + j];
            lane[j] += delta * delta;
        }
    for (int64_t k = whole; k < d; k++) lane[k - whole] += (a[k] - b[k]) * (a[k] - b[k]);
    return sqrt(add_lanes(lane));
}

/* (sqrt a - sqrt b)^2 = (a - b)^2 / (a + b + 2 sqrt(a b)) has one root instead of two, without
 * cancellation. tiny avoids 0 / 0. Infinities and products out of range give NaN or infinity; the
 * plain formula is used then. */
static double distance_root(const double *a, const double *b, int64_t d) {
    double lane[LANES] = {0};
    const double tiny = 1e-300;
    const int64_t whole = d - d % LANES;
    for (int64_t k = 0; k < whole; k += LANES)
        for (int j = 0; j < LANES; j++) {
            const double x = a[k + j], y = b[k + j], delta = x - y;
            lane[j] += delta * delta / (x + y + 2 * sqrt(x * y) + tiny);
        }
    for (int64_t k = whole; k < d; k++) {
        const double delta = sqrt(a[k]) - sqrt(b[k]);
        lane[k - whole] += delta * delta;
    }
    double sum = add_lanes(lane);
    if (isfinite(sum)) return sqrt(sum);
    sum = 0;
    for (int64_t k = 0; k < d; k++) {
        const double delta = sqrt(a[k]) - sqrt(b[k]);
        sum += delta * delta;
    }
    return sqrt(sum);
}

double sr_dist(const double *a, const double *b, int64_t d) {
    return distance(a, b, d) / (double)d;
}

double sr_dist_root(const double *a, const double *b, int64_t d) {
    return distance_root(a, b, d) / (double)d;
}

/* ||sqrt(a)||_2 */
static double length_of_root(const double *a, int64_t d) {
    double sum = 0;
    for (int64_t k = 0; k < d; k++) sum += a[k];
    return sqrt(sum);
}

/* ||a||_2 */
static double length(const double *a, int64_t d) {
    double sum = 0;
    for (int64_t k = 0; k < d; k++) sum += a[k] * a[k];
    return sqrt(sum);
}

double sr_tid_mean(const double *mu_B, const double *mu, const double *sigma2, int64_t d) {
    return distance(mu_B, mu, d) / length_of_root(sigma2, d);
}

double sr_tid_var(const double *sigma2_B, const double *sigma2, int64_t d) {
    return distance_root(sigma2_B, sigma2, d) / length_of_root(sigma2, d);
}

/* ||gamma / sqrt(statistic + eps) * sum / n * sqrt(Q)||_2 / d; Q = 1 unless `with_q`. */
static double part_of_gradient(const double *gamma, const double *statistic, const double *sum,
                               int64_t d, double eps, int64_t rows, bool with_q) {
    double total = 0;
    for (int64_t k = 0; k < d; k++) {
        double divisor = statistic[k] + eps;
        double c = (gamma ? gamma[k] : 1) / sqrt(divisor) * (sum[k] / (double)rows);
        total += with_q ? c * c * (statistic[k] / divisor) : c * c;
    }
    return sqrt(total) / (double)d;
}

static void derive_distances(int64_t d, const double *const v[SR_VECTOR_COUNT], double *out) {
    static const struct {
        sr_vector batch, running;
        sr_scalar root, square, relative_root, relative_square;
    } rows[] = {{SR_sigma2_B, SR_sigma2, SR_SCALAR_dist_sigma, SR_SCALAR_dist_sigma2,
                 SR_SCALAR_tid_var, SR_SCALAR_rel_sigma2},
                {SR_psi2_B, SR_psi2, SR_SCALAR_dist_psi, SR_SCALAR_dist_psi2, SR_SCALAR_rel_psi,
                 SR_SCALAR_rel_psi2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double *batch = v[rows[i].batch], *running = v[rows[i].running];
        if (!batch || !running) continue;
        const double root = distance_root(batch, running, d), square = distance(batch, running, d);
        out[rows[i].root] = root / (double)d;
        out[rows[i].square] = square / (double)d;
        out[rows[i].relative_root] = root / length_of_root(running, d);
        out[rows[i].relative_square] = square / length(running, d);
    }
    if (!v[SR_mu_B] || !v[SR_mu]) return;
    const double mean = distance(v[SR_mu_B], v[SR_mu], d);
    out[SR_SCALAR_dist_mu] = mean / (double)d;
    if (v[SR_sigma2_B] && v[SR_sigma2])
        out[SR_SCALAR_tid_mean] = mean / length_of_root(v[SR_sigma2], d);
}

static void derive_sigma(int64_t d, double eps, int64_t rows,
                         const double *const v[SR_VECTOR_COUNT], double *out) {
    if (!v[SR_sigma2_B] || rows <= 0) return;
    if (v[SR_sum_g])
        out[SR_SCALAR_g_mu] =
            part_of_gradient(v[SR_gamma], v[SR_sigma2_B], v[SR_sum_g], d, eps, rows, false);
    if (v[SR_sum_gx])
        out[SR_SCALAR_g_sigma2] =
            part_of_gradient(v[SR_gamma], v[SR_sigma2_B], v[SR_sum_gx], d, eps, rows, true);
}

static void derive_pn(int64_t d, double eps, const double *const v[SR_VECTOR_COUNT], double *out) {
    if (!v[SR_Gamma_t]) return;
    double most = v[SR_Gamma_t][0];
    for (int64_t k = 1; k < d; k++)
        if (v[SR_Gamma_t][k] > most || isnan(v[SR_Gamma_t][k])) most = v[SR_Gamma_t][k];
    out[SR_SCALAR_Gamma_max] = most;
    if (!v[SR_nu] || !v[SR_psi2]) return;
    double sum = 0;
    for (int64_t k = 0; k < d; k++)
        sum += v[SR_nu][k] * v[SR_nu][k] / (v[SR_psi2][k] + eps) * v[SR_Gamma_t][k];
    out[SR_SCALAR_g_psi2] = sqrt(sum) / (double)d;
}

void sr_derive_scalars(sr_family family, int64_t d, double eps, int64_t rows,
                       const double *const vector[SR_VECTOR_COUNT],
                       double scalar[SR_SCALAR_COUNT]) {
    if (rows >= 0) scalar[SR_SCALAR_rows] = (double)rows;
    derive_distances(d, vector, scalar);
    switch (family) {
    case SR_FAMILY_SIGMA:
        derive_sigma(d, eps, rows, vector, scalar);
        break;
    case SR_FAMILY_PSI:
        if (vector[SR_psi2_B] && vector[SR_sum_gx] && rows > 0)
            scalar[SR_SCALAR_g_psi2] = part_of_gradient(vector[SR_gamma], vector[SR_psi2_B],
                                                        vector[SR_sum_gx], d, eps, rows, true);
        break;
    case SR_FAMILY_PN:
        derive_pn(d, eps, vector, scalar);
        break;
    case SR_FAMILY_ROW:
    case SR_FAMILY_OWN:
    case SR_FAMILY_NONE:
    case SR_FAMILY_COUNT:
        break;
    }
}

static double observed_g_psi2(int64_t d, double eps, int64_t rows,
                              const double *const v[SR_VECTOR_COUNT]) {
    double total = 0;
    for (int64_t k = 0; k < d; k++) {
        double psi2 = v[SR_psi2_B][k] + eps;
        double gx =
            sqrt(v[SR_sigma2_B][k] + eps) * v[SR_sum_gx][k] + v[SR_mu_B][k] * v[SR_sum_g][k];
        double c = (v[SR_gamma] ? v[SR_gamma][k] : 1) / psi2 * (gx / (double)rows);
        total += c * c * (v[SR_psi2_B][k] / psi2);
    }
    return sqrt(total) / (double)d;
}

void sr_derive_observed(sr_family family, int64_t d, double eps, int64_t rows,
                        const double *const vector[SR_VECTOR_COUNT],
                        double scalar[SR_SCALAR_COUNT]) {
    sr_derive_scalars(SR_FAMILY_SIGMA, d, eps, rows, vector, scalar);
    if (family == SR_FAMILY_PN)
        derive_pn(d, eps, vector, scalar);
    else if (vector[SR_mu_B] && vector[SR_sigma2_B] && vector[SR_psi2_B] && vector[SR_sum_g] &&
             vector[SR_sum_gx] && rows > 0)
        scalar[SR_SCALAR_g_psi2] = observed_g_psi2(d, eps, rows, vector);
}
