/* Any recorded scalar of format.h, a form of one (statistic_forms.c), or a custom scalar per site,
 * by its own name. stat-distance, stat-gradnorm, stat-tid and stat-lngrad cite the source of
 * theirs.
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
