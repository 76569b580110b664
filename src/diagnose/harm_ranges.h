/* harm_ranges.h -- what statistics say of harm, made by sample_runs/harm.sh: do not edit.
 *
 * X(statistic, least and largest value at the worst site and number of runs, of those that lose
 * nothing in evaluation by running statistics, and of those that lose something)
 *
 * The runs, and their metric with running statistics less that with batch statistics:
 * cv_bn.h5: valid_nll -0.0417 [-0.0884, 0.00491] nats per image: harmless
 * cv_bn_32.h5: valid_nll -0.0139 [-0.0757, 0.0478] nats per image: open
 * cv_bn_every.h5: valid_nll 0.0689 [-0.271, 0.409] nats per image: open
 * cv_mnist.h5: valid_nll 0.0025 [-0.00714, 0.0121] nats per image: open
 * nlp_bn.h5: valid_nll 0.00575 [-0.00643, 0.0179] nats per token: open
 * nlp_bn_256.h5: valid_nll -0.00797 [-0.0163, 0.000347] nats per token: harmless
 * nlp_bn_first1.h5: valid_nll 0.00659 [0.00127, 0.0119] nats per token: open
 * nlp_bn_first2.h5: valid_nll 0.00741 [-0.000577, 0.0154] nats per token: open
 * nlp_pnv.h5: valid_nll 0.0083 [0.00655, 0.0101] nats per token: open
 * nlp_rbn.h5: valid_nll 0.00557 [-0.00491, 0.0161] nats per token: open
 * nlp_rbn_1.h5: valid_nll 0.00283 [-0.00236, 0.00803] nats per token: harmless
 * c_cnn_bn_strokes.h5: valid_loss 0.03 [-0.0204, 0.0804] nats: open
 * c_cnn_bn_strokes_16.h5: valid_loss -0.0699 [-0.087, -0.0528] nats: harmless
 * c_conv1d_bn_noise.h5: valid_loss -0.00727 [-0.0198, 0.00522] nats: harmless
 * c_encoder_bn_motifs.h5: valid_loss -0.00388 [-0.005, -0.00276] nats: harmless
 * c_mlp_bn_rings.h5: valid_loss -0.0506 [-0.0707, -0.0305] nats: harmless
 * c_mlp_bn_sines.h5: valid_loss -0.025 [-0.0337, -0.0162] 1: harmless
 * c_resnet_bn_strokes.h5: valid_loss 0.0439 [-0.0303, 0.118] nats: open
 * c_segment_bn.h5: valid_loss -0.000437 [-0.000921, 4.71e-05] nats: harmless
 * gap-translation-1-bn.h5: valid_nll 0.0317 [0.0238, 0.0396] nats per token: notable
 * gap-translation-1-pnv-ls.h5: valid_nll 0.000273 [-0.00199, 0.00253] nats per token: harmless
 * gap-translation-1-rbn.h5: valid_nll 0.0243 [0.0175, 0.0311] nats per token: notable
 * padding-1-bn-bucketed.h5: valid_nll 0.00464 [-0.00632, 0.0156] nats per token: open
 * padding-1-bn-padding-bucketed.h5: valid_nll 0.00447 [-0.0131, 0.0221] nats per token: open
 * padding-1-bn-padding-random.h5: valid_nll 0.00262 [-0.00511, 0.0103] nats per token: open
 * padding-1-bn-random.h5: valid_nll 0.000304 [-0.00874, 0.00935] nats per token: harmless
 * padding-2-bn-bucketed.h5: valid_nll 0.00734 [-0.0118, 0.0265] nats per token: open
 * padding-2-bn-padding-bucketed.h5: valid_nll 0.00658 [-0.0232, 0.0364] nats per token: open
 * padding-2-bn-padding-random.h5: valid_nll 0.00112 [-0.00663, 0.00888] nats per token: harmless
 * padding-2-bn-random.h5: valid_nll 0.0024 [-0.00211, 0.0069] nats per token: harmless
 * padding-3-bn-bucketed.h5: valid_nll 0.0117 [-0.0019, 0.0254] nats per token: open
 * padding-3-bn-padding-bucketed.h5: valid_nll 0.0112 [-0.0116, 0.0341] nats per token: open
 * padding-3-bn-padding-random.h5: valid_nll 0.00464 [0.000973, 0.0083] nats per token: harmless
 * padding-3-bn-random.h5: valid_nll 0.000586 [-0.00556, 0.00674] nats per token: harmless
 */
#define HARM_RANGES(X)                                                                             \
    X(tid_mean, 0.0206, 0.121, 14, 0.0727, 0.0736, 2)                                              \
    X(tid_var, 0.0255, 0.128, 14, 0.0404, 0.0419, 2)                                               \
    X(rel_psi, 0.0468, 0.0468, 1, 0, 0, 0)                                                         \
    X(outliers, 4.32, 11, 15, 8.11, 8.2, 2)                                                        \
    X(g_mu_share, 0.0332, 0.315, 14, 0.04, 0.0406, 2)                                              \
    X(g_sigma2_share, 0.0162, 0.484, 14, 0.03, 0.0301, 2)                                          \
    X(g_psi2_share, 0.0358, 0.0358, 1, 0, 0, 0)                                                    \
    X(padding, 0, 0.539, 15, 0.0578, 0.0578, 2)                                                    \
    X(expected_tid_mean, 0.0113, 0.0907, 14, 0.0236, 0.0236, 2)                                    \
    X(like_samples, 0.221, 0.752, 11, 0.81, 0.823, 2)
