/* Splits a run's loss against another run into parts: training, generalization, running statistics.
 *
 * For a metric `valid_M` that both runs recorded, at every evaluation:
 *
 *     T   train_M_batch: over the same training batches (--validate-train), batch statistics
 *     B   valid_M_batch: validation with batch statistics (--validate-batch)
 *     V   valid_M: validation as the model is used, with running statistics
 *
 *     training       = T(run) - T(reference)
 *     generalization = (B - T)(run) - (B - T)(reference)
 *     discrepancy    = (V - B)(run) - (V - B)(reference)
 *     total          = V(run) - V(reference), the sum of the three
 *
 * The sign is reversed if more is better: positive values mean that the run is worse. A run without
 * statistics over the batch has B = V. Metrics of other names have no T.
 */
#include "analysis/gap_split.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/evaluations.h"

const gap_part_text gap_part_texts[GAP_PARTS] = {
    {"training", "difference on fixed training batches with batch statistics; positive: worse"},
    {"generalization",
     "difference of validation with batch statistics, less the difference in training; "
     "positive: worse"},
    {"discrepancy",
     "difference of (validation with running statistics - validation with batch statistics); "
     "positive: worse"},
    {"total", "difference of validation: the sum of the three parts; positive: worse"},
};

enum { OF_TRAINING, OF_BATCH, OF_RUNNING, VALUES = EVALUATION_METRICS };

static bool has_batch_sites(const sr_runfile *run) {
    const sr_run_site *site;
    for (int64_t i = 0; (site = sr_run_get_site(run, i)); i++)
        if (sr_run_over_batch(site)) return true;
    return false;
}

static sr_status read_run(evaluations *e, const sr_runfile *run, const char *metric,
                          sr_failure *why) {
    char batch[BATCH_NAME], training[BATCH_NAME + 8] = "";
    const bool of_validation = strncmp(metric, "valid_", 6) == 0;
    evaluations_batch_name(metric, batch);
    if (of_validation) snprintf(training, sizeof training, "train_%s", batch + 6);
    const char *const name[VALUES] = {[OF_TRAINING] = of_validation ? training : NULL,
                                      [OF_BATCH] = has_batch_sites(run) ? batch : metric,
                                      [OF_RUNNING] = metric};
    return evaluations_read(e, run, name, why);
}

/* Cuts the values of an evaluation into parts: part[p][at]. */
static void put_parts(double *const *part, int at, const double *value) {
    part[GAP_TRAINING][at] = value[OF_TRAINING];
    part[GAP_GENERALIZATION][at] = value[OF_BATCH] - value[OF_TRAINING];
    part[GAP_DISCREPANCY][at] = value[OF_RUNNING] - value[OF_BATCH];
    part[GAP_TOTAL][at] = value[OF_RUNNING];
}

/* Appends evaluation i of the run less evaluation k of the reference. */
static void add_evaluation(gap_split *split, const evaluations *run, int i,
                           const evaluations *reference, int k, double sign) {
    const int at = split->count++;
    double by[VALUES], own[VALUES];
    for (int v = 0; v < VALUES; v++) {
        own[v] = sign * reference->value[v][k];
        by[v] = sign * (run->value[v][i] - reference->value[v][k]);
    }
    split->step[at] = run->step[i];
    split->epoch[at] = run->epoch[i];
    put_parts(split->part, at, by);
    put_parts(split->of_reference, at, own);
}

static sr_status allocate(gap_split *split, int64_t count, sr_failure *why) {
    double *memory = malloc((2 + 2 * GAP_PARTS) * (size_t)(count + 1) * sizeof *memory);
    if (!memory) return sr_fail(why, SR_MEMORY, "out of memory");
    split->step = memory, split->epoch = memory + count;
    for (int p = 0; p < GAP_PARTS; p++) {
        split->part[p] = memory + (2 + p) * count;
        split->of_reference[p] = memory + (2 + GAP_PARTS + p) * count;
    }
    return SR_OK;
}

static double last_step(const evaluations *e) {
    return e->count ? e->step[e->count - 1] : NAN;
}

static void pair_evaluations(gap_split *split, const evaluations *run, const evaluations *reference,
                             double sign) {
    for (int i = 0, k = 0; i < run->count; i++) {
        while (k < reference->count && reference->step[k] < run->step[i]) k++;
        if (k == reference->count || reference->step[k] != run->step[i]) continue;
        add_evaluation(split, run, i, reference, k, sign);
    }
    split->last = fmax(last_step(run), last_step(reference));
    split->of_runs = run->count + reference->count - split->count;
}

sr_status gap_split_read(gap_split *split, const sr_runfile *run, const sr_runfile *reference,
                         const sr_run_metric *metric, sr_failure *why) {
    const double sign = metric->better == SR_BETTER_MORE ? -1 : 1;
    evaluations of_run, of_reference = {0};
    *split = (gap_split){0};
    sr_status status = read_run(&of_run, run, metric->name, why);
    if (status == SR_OK) status = read_run(&of_reference, reference, metric->name, why);
    if (status == SR_OK) status = allocate(split, of_run.count, why);
    if (status == SR_OK) pair_evaluations(split, &of_run, &of_reference, sign);
    evaluations_free(&of_run);
    evaluations_free(&of_reference);
    return status;
}

void gap_split_free(gap_split *split) {
    free(split->step);
    *split = (gap_split){0};
}
