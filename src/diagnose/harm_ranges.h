/* harm_ranges.h -- what statistics say of harm, made by sample_runs/harm.sh: do not edit.
 *
 * X(statistic, least and largest value at the worst site and number of runs, of those that lose
 * nothing in evaluation by running statistics, and of those that lose something)
 *
 * The runs, and their metric with running statistics less that with batch statistics:
 * cv_bn.h5: valid_nll -0.00884 [-0.116, 0.0987] nats per image: open
 * cv_bn_32.h5: valid_nll -0.017 [-0.0507, 0.0167] nats per image: open
 * cv_bn_every.h5: valid_nll 0.0846 [-0.1, 0.269] nats per image: open
 * cv_mnist.h5: valid_nll 0.00315 [-0.00361, 0.00992] nats per image: harmless
 * nlp_bn.h5: valid_nll 0.00442 [-0.00323, 0.0121] nats per token: open
 * nlp_bn_256.h5: valid_nll -0.00871 [-0.0137, -0.00376] nats per token: harmless
 * nlp_bn_first1.h5: valid_nll 0.0049 [-0.00116, 0.011] nats per token: open
 * nlp_bn_first2.h5: valid_nll 0.00556 [-0.00168, 0.0128] nats per token: open
 * nlp_pnv.h5: valid_nll 0.00755 [0.00496, 0.0101] nats per token: open
 * nlp_rbn.h5: valid_nll 0.00605 [0.000359, 0.0117] nats per token: open
 * nlp_rbn_1.h5: valid_nll 0.00332 [0.000187, 0.00646] nats per token: harmless
 * c_cnn_bn_strokes.h5: valid_loss 0.05 [-0.0132, 0.113] nats: open
 * c_cnn_bn_strokes_16.h5: valid_loss -0.0683 [-0.0834, -0.0532] nats: harmless
 * c_conv1d_bn_noise.h5: valid_loss -0.00879 [-0.0195, 0.00193] nats: harmless
 * c_encoder_bn_motifs.h5: valid_loss -0.00303 [-0.00537, -0.000691] nats: harmless
 * c_mlp_bn_rings.h5: valid_loss -0.0485 [-0.0655, -0.0316] nats: harmless
 * c_mlp_bn_sines.h5: valid_loss -0.018 [-0.0371, 0.00121] 1: open
 * c_resnet_bn_strokes.h5: valid_loss 0.0351 [-0.0253, 0.0956] nats: open
 * c_segment_bn.h5: valid_loss -0.000524 [-0.000953, -9.51e-05] nats: harmless
 * gap-translation-1-bn.h5: valid_nll 0.0316 [0.0246, 0.0387] nats per token: notable
 * gap-translation-1-pnv-ls.h5: valid_nll 0.000116 [-0.00193, 0.00216] nats per token: harmless
 * gap-translation-1-rbn.h5: valid_nll 0.0244 [0.0184, 0.0305] nats per token: notable
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
    X(tid_mean, 0.0205, 0.146, 13, 0.0727, 0.0737, 2)                                              \
    X(tid_var, 0.0256, 0.128, 13, 0.0404, 0.0422, 2)                                               \
    X(rel_psi, 0.0469, 0.0469, 1, 0, 0, 0)                                                         \
    X(outliers, 4.64, 11, 14, 8.11, 8.2, 2)                                                        \
    X(g_mu_share, 0.0332, 0.315, 13, 0.04, 0.0406, 2)                                              \
    X(g_sigma2_share, 0.0162, 0.484, 13, 0.03, 0.0301, 2)                                          \
    X(g_psi2_share, 0.0358, 0.0358, 1, 0, 0, 0)                                                    \
    X(padding, 0, 0.539, 14, 0.0578, 0.0578, 2)                                                    \
    X(expected_tid_mean, 0.0113, 0.0907, 13, 0.0236, 0.0236, 2)                                    \
    X(like_samples, 0.221, 1.61, 11, 0.812, 0.824, 2)
