/* Any recorded scalar of format.h, by its own name. For the ones with an analysis of their own
 * (stat-distance, stat-gradnorm, stat-tid, stat-lngrad), that one also says where the formula is
 * from.
 */
#include "analysis.h"

#define SCALAR(name, definition) {#name, #name, NULL, 0, NULL, NULL},
static const statistic stats[] = {SR_SCALARS(SCALAR)};

int main(int argc, char **argv) {
    const analysis a = {
        .program = "stat-scalar",
        .does = "Any recorded scalar, per site.",
        .stat = stats,
        .statistics = sizeof stats / sizeof stats[0],
        .preset = "rows,nonfinite",
        .site = "*",
        .source = FROM_SCALARS,
    };
    return analysis_main(&a, argc, argv);
}
