/* format.h -- the run file, format version 1: all names, types and definitions.
 *
 * Recorder and reader share these tables. To add a field, add a row here, a line in
 * docs/file-format.md, and a test. S sites, T steps, V recorded vector steps, W = sum of widths,
 * E evaluations. n = valid rows, d = width of the site, g = dL/dy, xhat = the normalized value
 * before gain, s = sqrt(statistic + eps).
 */
#ifndef STATREC_FORMAT_H
#define STATREC_FORMAT_H

#define SR_FORMAT_NAME    "statrec-run"
#define SR_FORMAT_VERSION 1

/* X(name, size, definition): texts of /sites, [S] of `size` bytes, in the order of the forward
   pass. */
#define SR_SITE_TEXTS(X)                                                                           \
    X(name, SR_NAME_SIZE, "site, in the order of the forward pass")                                \
    X(norm, SR_NAME_SIZE, "normalization method of the site")                                      \
    X(kind, SR_KIND_SIZE, "where the site sits")

/* X(name, size, definition): texts of /sites that describe the method. Older files lack all of
 * them, and family and layer_scale_own. */
#define SR_METHOD_TEXTS(X)                                                                         \
    X(axis, SR_KIND_SIZE,                                                                          \
      "what the method takes its statistics over: batch, row or sample; -: it takes none")         \
    X(uses, SR_KIND_SIZE,                                                                          \
      "which of mu, sigma2, psi2 over the axis it normalizes with, separated by commas")           \
    X(constants, SR_KIND_SIZE, "those of uses that its backward pass takes for constants")

/* X(name, definition): int32 [S] under /sites. The oldest files lack observed. */
#define SR_SITE_INTS(X)                                                                            \
    X(offset, "first column of the site in /vectors")                                              \
    X(width, "columns of the site in /vectors: features d")                                        \
    X(depth, "place of the site in the forward pass")                                              \
    X(layer_scale, "groups of a layer scale in front of the method; 0 = none")                     \
    X(observed, "1: batch statistics are observed beside the method; 0: only what it uses")        \
    X(layer_scale_own, "1: the layer scale is a part of the method; 0: it is not")                 \
    X(merged, "1: the passes of a step are one batch, merged; 0: statistics of one pass")

/* X(name, definition): float64 [S] under /sites. */
#define SR_SITE_REALS(X)                                                                           \
    X(eps, "added to the statistic under the root")                                                \
    X(alpha, "weight of the OLD running value: new = alpha * old + (1 - alpha) * batch")           \
    X(alpha_bwd, "PN: weight of the OLD nu; NaN: as alpha, or a method without nu")

/* X(NAME, name, definition): sr_family, as text in /sites/family. It selects the formulas for the
 * parts of dx: g_mu, g_sigma2, g_psi2 of /scalars. */
#define SR_FAMILIES(X)                                                                             \
    X(NONE, none, "no batch statistic divides")                                                    \
    X(SIGMA, sigma, "centred, divided by sqrt(sigma2_B + eps) of the batch")                       \
    X(PSI, psi, "divided by sqrt(psi2_B + eps) of the batch")                                      \
    X(PN, pn, "divided by the running sqrt(psi2 + eps), nu in the backward pass")                  \
    X(ROW, row, "statistics of rows or samples, none of the batch")                                \
    X(OWN, own, "batch statistics in formulas of the method's own, whose g_* the host puts")
#define SR_FAMILY_DEFINITION                                                                       \
    "which formulas hold: sigma, psi, pn, own (batch statistics), row, none"

/* X(name, definition): int64 columns of /steps. */
#define SR_STEP_INTS(X)                                                                            \
    X(step, "forward and backward passes so far, this one included; unique, increasing")           \
    X(update, "optimizer update that this pass belongs to, from 1")                                \
    X(tokens, "images, or non-pad target tokens with </s>, of this pass")

/* X(name, unit, definition): float64 columns of /steps. */
#define SR_STEP_REALS(X)                                                                           \
    X(epoch, "epochs", "passes over the training data so far, this step included")                 \
    X(loss, "nats per token or image", "training loss of this pass, with smoothing and penalties") \
    X(lr, "1", "learning rate of the update; NaN except in an update's last row")                  \
    X(grad_norm, "1",                                                                              \
      "Euclidean norm of all gradients before clipping; NaN except in an update's last row")       \
    X(seconds, "s", "wall time since the start of the run")

/* X(name, definition): float32 [V, W] under /vectors. Sums and means are over valid rows.
 * Older files lack the rows after Lambda_t. */
#define SR_VECTORS(X)                                                                              \
    X(mu_B, "mean over valid rows")                                                                \
    X(sigma2_B, "biased variance over valid rows")                                                 \
    X(psi2_B, "mean square over valid rows")                                                       \
    X(mu, "running mean from before the update")                                                   \
    X(sigma2, "running variance from before the update")                                           \
    X(psi2, "running mean square from before the update")                                          \
    X(gamma, "gain")                                                                               \
    X(sum_g, "sum over valid rows of g")                                                           \
    X(sum_gx, "sum over valid rows of g * xhat")                                                   \
    X(nu, "PN backward estimate, before the update")                                               \
    X(Gamma_t, "PN: mean over valid rows of xhat^2")                                               \
    X(Lambda_t, "PN: mean over valid rows of gamma * g * xhat")                                    \
    X(position_B, "mean over valid rows of the position encoding in this site's input")            \
    X(position, "running position_B from before the update, weighed with the site's alpha")

/* X(name, definition): float32 [T, S] under /scalars, NaN without a value. sqrt(sigma2) and
 * sqrt(psi2) are without eps. Older files lack the rows after row_g_var. */
#define SR_SCALARS(X)                                                                              \
    X(rows, "valid rows n")                                                                        \
    X(nonfinite, "NaN and infinite values, as float32, among this site's vectors of this step")    \
    X(dist_mu, "||mu_B - mu||_2 / d")                                                              \
    X(dist_sigma, "||sqrt(sigma2_B) - sqrt(sigma2)||_2 / d")                                       \
    X(dist_sigma2, "||sigma2_B - sigma2||_2 / d")                                                  \
    X(dist_psi, "||sqrt(psi2_B) - sqrt(psi2)||_2 / d")                                             \
    X(dist_psi2, "||psi2_B - psi2||_2 / d")                                                        \
    X(tid_mean, "||mu_B - mu||_2 / ||sqrt(sigma2)||_2")                                            \
    X(tid_var, "||sqrt(sigma2_B) - sqrt(sigma2)||_2 / ||sqrt(sigma2)||_2")                         \
    X(g_mu, "||c_mu||_2 / d, c_mu = gamma/s * sum_g/n: the part of dx due to mu_B")                \
    X(g_sigma2,                                                                                    \
      "sqrt(sum c_sig^2 Q) / d, c_sig = gamma/s * sum_gx/n, Q = sigma2_B/(sigma2_B+eps)")          \
    X(g_psi2, "sqrt(sum c_psi^2 Q) / d, c_psi = gamma/s * sum_gx/n, Q = psi2_B/(psi2_B+eps); PN: " \
              "|nu|/psi*sqrt(Gamma)")                                                              \
    X(g_sigma2_rowmean, "mean over rows of ||c_sig * xhat_i||_2, divided by d")                    \
    X(g_psi2_rowmean, "mean over rows of ||c_psi * xhat_i||_2, divided by d")                      \
    X(Gamma_max, "PN: largest Gamma_t")                                                            \
    X(row_grad_mean, "LN family: mean over rows of the mean over features of dx")                  \
    X(row_grad_var, "LN family: mean over rows of the biased variance over features of dx")        \
    X(row_g_mean, "LN family: mean over rows of the mean over features of gamma * g")              \
    X(row_g_var, "LN family: mean over rows of the biased variance over features of gamma * g")    \
    X(row_exact_mean, "LN family: row_grad_mean by the closed form of Theorem 1, without dx")      \
    X(row_exact_var, "LN family: row_grad_var by the closed form of Theorem 1, without dx")        \
    X(rel_sigma2, "||sigma2_B - sigma2||_2 / ||sigma2||_2")                                        \
    X(rel_psi, "||sqrt(psi2_B) - sqrt(psi2)||_2 / ||sqrt(psi2)||_2")                               \
    X(rel_psi2, "||psi2_B - psi2||_2 / ||psi2||_2")                                                \
    X(dx_norm, "||dx||_F over valid rows and features, this site's own")                           \
    X(direct_norm, "||gamma/s * g||_F: dx if the statistics did not depend on x")                  \
    X(dx_norm_bn, "observed sites of other methods: dx_norm if bn stood there, with this g")       \
    X(direct_norm_bn, "the same of direct_norm")                                                   \
    X(samples, "sentences or images that the rows of this pass belong to")                         \
    X(padded, "padded rows of this pass, which are not among `rows`")                              \
    X(row_free_var, "LN family: row_grad_var if mean and deviation of the row were constants")

/* Custom scalars (sr_declare_scalar): per site, float32 [T, S] under /scalars; per step, float64
 * [T] under /steps. Files with custom scalars or ranks have /host with the attributes scalars and
 * steps (their names, one a line) and ranks (sr_options). */
typedef enum { SR_PER_SITE, SR_PER_STEP } sr_scope;

/* Metrics (sr_add_metric): float64 [E] each under /evals, beside /evals/step and /evals/epoch. The
 * direction of improvement is stored in the attribute `better` as SR_BETTER_WORDS[better + 1]. */
typedef enum { SR_BETTER_LESS = -1, SR_BETTER_NEITHER, SR_BETTER_MORE } sr_better;
#define SR_BETTER_WORDS                                                                            \
    { "less", "", "more" }

/* X(name, definition): float64 [P, W] under /spectra, descending within a site's columns. Beside
 * them step int64 [P] and rows int64 [P, S]: the valid rows N, -1 for a site that was not measured.
 * Only in files with options.spectra. */
#define SR_SPECTRA(X)                                                                              \
    X(input, "singular values of X [N, d], the tensor that the site normalizes, valid rows, not "  \
             "centred: roots of the eigenvalues of X^T X in double")                               \
    X(gradient, "singular values of dL/dX [N, d], this site's own, in the same way")

/* X(name, unit, definition): float64 [S] under /final, beside batches int64. They come from a pass
 * over training batches after training, with frozen running statistics. At an observed site whose
 * method has none, mu and sigma2 are the observer's. Only in files with options.final. */
#define SR_FINALS(X)                                                                               \
    X(tid_mean, "1", "mean over batches of ||mu_B - mu||_2 / ||sqrt(sigma2)||_2")                  \
    X(tid_var, "1", "mean over batches of ||sqrt(sigma2_B) - sqrt(sigma2)||_2 / ||sqrt(sigma2)||_2")

/* X(name, type, definition): pair_NAME [S, K] under /final: K pairs of each site's input and output
 * in that pass. A site without pairs has NaN and -1. Only in files with options.pairs. */
#define SR_PAIRS(X)                                                                                \
    X(x, FLOAT32,                                                                                  \
      "entry of the tensor that the site normalizes, drawn at random from the valid "              \
      "rows and all features of one batch")                                                        \
    X(y, FLOAT32,                                                                                  \
      "the output at that entry before gain and bias, (y - beta)/gamma; NaN where "                \
      "gamma is 0")                                                                                \
    X(feature, INT32, "feature of the entry, from 0; -1: the site kept no pairs")

/* X(name, definition): float64 [R, W] under /running, beside step int64 [R]: the recorder's running
 * statistics after that step; rows are in no order. Only in files recorded from raw tensors or
 * sums. */
#define SR_RUNNING(X)                                                                              \
    X(mu, "running mean after the step's update")                                                  \
    X(sigma2, "running variance after the step's update")                                          \
    X(psi2, "running mean square after the step's update")                                         \
    X(nu, "PN backward estimate after the step's update")

#define SR_ENUM_VECTOR1(name, ...)   SR_##name,
#define SR_ENUM_SCALAR1(name, ...)   SR_SCALAR_##name,
#define SR_ENUM_SPECTRUM1(name, ...) SR_SPECTRUM_##name,
#define SR_ENUM_FINAL1(name, ...)    SR_FINAL_##name,
#define SR_ENUM_PAIR1(name, ...)     SR_PAIR_##name,
typedef enum { SR_VECTORS(SR_ENUM_VECTOR1) SR_VECTOR_COUNT } sr_vector;
typedef enum { SR_SCALARS(SR_ENUM_SCALAR1) SR_SCALAR_COUNT } sr_scalar;
typedef enum { SR_SPECTRA(SR_ENUM_SPECTRUM1) SR_SPECTRUM_COUNT } sr_spectrum;
typedef enum { SR_FINALS(SR_ENUM_FINAL1) SR_FINAL_COUNT } sr_final;
typedef enum { SR_PAIRS(SR_ENUM_PAIR1) SR_PAIR_COUNT } sr_pair;
#define SR_ENUM_FAMILY1(name, ...) SR_FAMILY_##name,
typedef enum { SR_FAMILIES(SR_ENUM_FAMILY1) SR_FAMILY_COUNT } sr_family;

/* The first rows of each format revision of these tables. A file has all rows of a revision, or
 * none of them. */
#define SR_SCALAR_AGES SR_SCALAR_row_exact_mean, SR_SCALAR_rel_sigma2, SR_SCALAR_row_free_var
#define SR_VECTOR_AGES SR_position_B

enum {
    SR_NAME_SIZE = 64,
    SR_KIND_SIZE = 16,
    SR_STATUS_SIZE = 16,
    SR_REASON_SIZE = 256,
    SR_DIGEST_SIZE = 32,
    SR_METHOD_SIZE = 192,
    SR_DEFINITION_SIZE = 512, /* for a metric or custom scalar */
    SR_METRICS_MAX = 128,
    SR_EMBEDDINGS_MAX = 1024,
    SR_RUNNING_KEPT = 8,
    SR_DECLARED_MAX = 64 /* custom scalars */
};

#endif
