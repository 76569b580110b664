/* Any recorded scalar of format.h, a form of one (statistic_forms.c), or a number per site that the
 * run's program declared, by its own name. For the ones with an analysis of their own
 * (stat-distance, stat-gradnorm, stat-tid, stat-lngrad), that one also says where the formula is
 * from.
 */
#include "analysis/frame/statistics_table.h"

int main(int argc, char **argv) {
    const analysis a = {
        .program = "stat-scalar",
        .does = "Any recorded scalar per site, also custom ones (statrec info lists them).",
        .stat = recorded_statistics,
        .statistics = RECORDED_STATISTICS,
        .default_stat = "rows,nonfinite",
        .site = "*",
        .source = FROM_SCALARS,
    };
    return analysis_main(&a, argc, argv);
}
