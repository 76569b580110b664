/* healthy_ranges.h -- what recorded runs usually span, made by sample_runs/healthy.sh: do not edit.
 *
 * X(statistic, kind of the runs, least, largest, runs, sites or series with an estimate)
 */
#define HEALTHY_RANGES(X)                                                                          \
    X(tid_mean, "vision", 0.0161, 0.144, 4, 26)                                                    \
    X(tid_var, "vision", 0.0309, 0.0685, 4, 26)                                                    \
    X(outliers, "vision", 3.92, 11.1, 4, 26)                                                       \
    X(g_mu_share, "vision", 0.00595, 0.188, 4, 26)                                                 \
    X(g_sigma2_share, "vision", 0.00582, 0.0971, 4, 26)                                            \
    X(dead, "vision", 0, 0, 1, 2)                                                                  \
    X(growth, "vision", 0.655, 1.3, 1, 2)                                                          \
    X(padding, "vision", 0, 0, 5, 36)                                                              \
    X(like_samples, "vision", 0.089, 1.59, 4, 26)                                                  \
    X(lag, "vision", 1.09, 1.92, 1, 2)                                                             \
    X(embedding_rank, "text", 0.972, 0.985, 17, 17)                                                \
    X(tid_mean, "watched", 0.0133, 0.121, 8, 33)                                                   \
    X(tid_var, "watched", 0.0139, 0.128, 8, 33)                                                    \
    X(outliers, "watched", 3.35, 9.6, 10, 41)                                                      \
    X(g_mu_share, "watched", 0.00637, 0.315, 8, 33)                                                \
    X(g_sigma2_share, "watched", 0.00815, 0.484, 8, 33)                                            \
    X(padding, "watched", 0, 0, 10, 41)                                                            \
    X(like_samples, "watched", 0.0735, 0.492, 5, 21)
