/* harm_ranges.h -- what statistics say of harm, made by sample_runs/harm.sh: do not edit.
 *
 * X(statistic, least and largest value at the worst site and number of runs, of those that lose
 * nothing in evaluation by running statistics, and of those that lose something)
 *
 * The runs, and their metric with running statistics less that with batch statistics:
 * cv_bn.h5: valid_loss -0.00884 [-0.116, 0.0987] nats per image: open
 * cv_bn_32.h5: valid_loss -0.017 [-0.0507, 0.0167] nats per image: open
 * cv_bn_every.h5: valid_loss 0.0846 [-0.1, 0.269] nats per image: open
 * cv_mnist.h5: valid_loss 0.00315 [-0.00361, 0.00992] nats per image: harmless
 * nlp_bn.h5: valid_loss 0.00434 [-0.00161, 0.0103] nats per token: open
 * nlp_bn_256.h5: valid_loss -0.00808 [-0.0113, -0.00487] nats per token: harmless
 * nlp_bn_first1.h5: valid_loss 0.00442 [-0.00106, 0.00989] nats per token: harmless
 * nlp_bn_first2.h5: valid_loss 0.00494 [-0.000849, 0.0107] nats per token: open
 * nlp_pnv.h5: valid_loss 0.00574 [0.00202, 0.00946] nats per token: harmless
 * nlp_rbn.h5: valid_loss 0.00604 [0.00156, 0.0105] nats per token: open
 * nlp_rbn_1.h5: valid_loss 0.0039 [0.000755, 0.00705] nats per token: harmless
 * gap-translation-1-bn.h5: valid_loss 0.0279 [0.0221, 0.0337] nats per token: notable
 * gap-translation-1-pnv-ls.h5: valid_loss 0.000169 [-0.00148, 0.00182] nats per token: harmless
 * gap-translation-1-rbn.h5: valid_loss 0.0218 [0.0167, 0.0269] nats per token: notable
 * padding-1-bn-bucketed.h5: valid_loss 0.00481 [0.0018, 0.00782] nats per token: harmless
 * padding-1-bn-padding-bucketed.h5: valid_loss 0.00574 [-0.00219, 0.0137] nats per token: open
 * padding-1-bn-padding-random.h5: valid_loss 0.000891 [-0.00311, 0.00489] nats per token: harmless
 * padding-1-bn-random.h5: valid_loss 0.000563 [-0.00311, 0.00424] nats per token: harmless
 * padding-2-bn-bucketed.h5: valid_loss 0.00873 [-0.00342, 0.0209] nats per token: open
 * padding-2-bn-padding-bucketed.h5: valid_loss 0.00845 [-0.0141, 0.031] nats per token: open
 * padding-2-bn-padding-random.h5: valid_loss 0.00205 [-0.004, 0.0081] nats per token: harmless
 * padding-2-bn-random.h5: valid_loss 0.0039 [-0.000496, 0.00829] nats per token: harmless
 * padding-3-bn-bucketed.h5: valid_loss 0.0106 [-0.00902, 0.0302] nats per token: open
 * padding-3-bn-padding-bucketed.h5: valid_loss 0.0109 [-0.0158, 0.0375] nats per token: open
 * padding-3-bn-padding-random.h5: valid_loss 0.00345 [0.000275, 0.00662] nats per token: harmless
 * padding-3-bn-random.h5: valid_loss 0.000974 [0.000294, 0.00165] nats per token: harmless
 */
#define HARM_RANGES(X)                                                                             \
    X(tid_mean, 0.038, 0.146, 11, 0.0727, 0.0737, 2)                                               \
    X(tid_var, 0.0256, 0.0692, 11, 0.0404, 0.0422, 2)                                              \
    X(rel_psi, 0.0469, 0.107, 2, 0, 0, 0)                                                          \
    X(outliers, 4.64, 11, 13, 8.11, 8.2, 2)                                                        \
    X(g_mu_share, 0.0456, 0.194, 11, 0.04, 0.0406, 2)                                              \
    X(g_sigma2_share, 0.0355, 0.117, 11, 0.03, 0.0301, 2)                                          \
    X(g_psi2_share, 0.0358, 0.0907, 2, 0, 0, 0)                                                    \
    X(padding, 0, 0.539, 13, 0.0578, 0.0578, 2)                                                    \
    X(expected_tid_mean, 0.0159, 0.0907, 11, 0.0236, 0.0236, 2)                                    \
    X(like_samples, 0.221, 1.61, 11, 0.812, 0.824, 2)
