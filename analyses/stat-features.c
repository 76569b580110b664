/* Power of a site's input over its features: kurtosis, mean direction, power and variance, largest
 * variance, dead features. feature_statistics.c has formulas and sources; stat-depth orders by
 * depth. --per-feature, --quantiles and --histogram print single features (feature_table.c).
 */
#include <stdio.h>

#include "analysis/feature_table.h"
#include "analysis/feature_values.h"
#include "analysis/frame/statistics_table.h"

static void print_features_help(void) {
    printf("With --per-feature, --quantiles or --histogram, --stat names these instead:\n");
    for (int i = 0; i < FEATURE_VALUES; i++)
        printf("  %-17s %s\n", feature_values[i].word, feature_values[i].definition);
    putchar('\n');
}

int main(int argc, char **argv) {
    const analysis a = {
        .program = "stat-features",
        .does = "Power of a site's input over its features: outlier features, mean direction, "
                "power and variance, dead features. --per-feature, --quantiles and --histogram: "
                "its single features.",
        .stat = feature_statistics,
        .statistics = FEATURE_STATISTICS,
        .default_stat = "kurtosis,mean_share,power,variance,largest,dead",
        .site = "*",
        .source = FROM_VECTORS,
        .hint = "without batch statistics, add `statrec train --observe batch`; vectors need "
                "--record all",
        .print_features = feature_table_print,
        .features_help = print_features_help,
    };
    return analysis_main(&a, argc, argv);
}
