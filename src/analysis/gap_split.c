/* Where a run loses against another: in training, in generalization, or by its running statistics.
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
 * The sign is turned where more is better: positive values mean that the run is worse. A run
 * without statistics over the batch has B = V. Metrics of other names have no T.
 */
#include "analysis/gap_split.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const gap_part_text gap_part_texts[GAP_PARTS] = {
    {"training", "difference on fixed training batches with batch statistics; positive: worse"},
    {"generalization",
     "difference of validation with batch statistics, less the difference in training"},
    {"discrepancy",
     "difference of (validation with running statistics - validation with batch statistics)"},
    {"total", "difference of validation: the sum of the three parts"},
};

typedef enum { OF_TRAINING, OF_BATCH, OF_RUNNING, VALUES } value_of;

/* A run's metric in its three forms. */
typedef struct evaluations {
    double *memory;
    double *step, *epoch, *value[VALUES]; /* [count] */
    int64_t count;
} evaluations;

static bool has_batch_sites(const sr_runfile *run) {
    const sr_run_site *site;
    for (int64_t i = 0; (site = sr_run_get_site(run, i)); i++)
        if (sr_run_over_batch(site)) return true;
    return false;
}

static sr_status read_column(const sr_runfile *run, const char *name, int64_t count, double *value,
                             sr_failure *why) {
    if (strcmp(name, "step") == 0 || (*name && sr_run_has_eval(run, name)))
        return sr_run_eval(run, name, 0, count, value, why);
    for (int64_t i = 0; i < count; i++) value[i] = NAN;
    return SR_OK;
}

/* A host may write the metrics of one step one after another: rows of a step become one. */
static void join_rows_of_a_step(evaluations *e) {
    int64_t kept = 0;
    for (int64_t i = 0; i < e->count; i++) {
        const bool again = kept && e->step[kept - 1] == e->step[i];
        const int64_t at = again ? kept - 1 : kept++;
        e->step[at] = e->step[i];
        e->epoch[at] = e->epoch[i];
        for (int v = 0; v < VALUES; v++)
            if (!again || isfinite(e->value[v][i])) e->value[v][at] = e->value[v][i];
    }
    e->count = kept;
}

static sr_status read_run(evaluations *e, const sr_runfile *run, const char *metric,
                          sr_failure *why) {
    char batch[SR_NAME_SIZE + 16], training[SR_NAME_SIZE + 16] = "";
    const bool of_validation = strncmp(metric, "valid_", 6) == 0;
    const int64_t n = sr_run_get_info(run)->evals;
    *e = (evaluations){.memory = malloc((2 + VALUES) * (size_t)(n + 1) * sizeof *e->memory)};
    if (!e->memory) return sr_fail(why, SR_MEMORY, "out of memory");
    e->count = n;
    e->step = e->memory, e->epoch = e->step + n;
    for (int v = 0; v < VALUES; v++) e->value[v] = e->epoch + (v + 1) * n;
    snprintf(batch, sizeof batch, "%s_batch", metric);
    if (of_validation) snprintf(training, sizeof training, "train_%s_batch", metric + 6);
    if (!has_batch_sites(run)) snprintf(batch, sizeof batch, "%s", metric);
    sr_status status = read_column(run, "step", n, e->step, why);
    if (status == SR_OK) status = read_column(run, "epoch", n, e->epoch, why);
    if (status == SR_OK) status = read_column(run, training, n, e->value[OF_TRAINING], why);
    if (status == SR_OK) status = read_column(run, batch, n, e->value[OF_BATCH], why);
    if (status == SR_OK) status = read_column(run, metric, n, e->value[OF_RUNNING], why);
    if (status == SR_OK) join_rows_of_a_step(e);
    return status;
}

/* Evaluation i of the run against evaluation k of the reference, behind those that split has. */
static void add_evaluation(gap_split *split, const evaluations *run, int64_t i,
                           const evaluations *reference, int64_t k, double sign) {
    const int at = split->count++;
    double by[VALUES];
    for (int v = 0; v < VALUES; v++) by[v] = sign * (run->value[v][i] - reference->value[v][k]);
    split->step[at] = run->step[i];
    split->epoch[at] = run->epoch[i];
    split->part[GAP_TRAINING][at] = by[OF_TRAINING];
    split->part[GAP_GENERALIZATION][at] = by[OF_BATCH] - by[OF_TRAINING];
    split->part[GAP_DISCREPANCY][at] = by[OF_RUNNING] - by[OF_BATCH];
    split->part[GAP_TOTAL][at] = by[OF_RUNNING];
}

static sr_status allocate(gap_split *split, int64_t count, sr_failure *why) {
    double *memory = malloc((2 + GAP_PARTS) * (size_t)(count + 1) * sizeof *memory);
    if (!memory) return sr_fail(why, SR_MEMORY, "out of memory");
    split->step = memory, split->epoch = memory + count;
    for (int p = 0; p < GAP_PARTS; p++) split->part[p] = memory + (2 + p) * count;
    return SR_OK;
}

sr_status gap_split_read(gap_split *split, const sr_runfile *run, const sr_runfile *reference,
                         const sr_run_metric *metric, sr_failure *why) {
    const double sign = metric->better == SR_BETTER_MORE ? -1 : 1;
    evaluations of_run, of_reference = {0};
    *split = (gap_split){0};
    sr_status status = read_run(&of_run, run, metric->name, why);
    if (status == SR_OK) status = read_run(&of_reference, reference, metric->name, why);
    if (status == SR_OK) status = allocate(split, of_run.count, why);
    for (int64_t i = 0, k = 0; status == SR_OK && i < of_run.count; i++) {
        while (k < of_reference.count && of_reference.step[k] < of_run.step[i]) k++;
        if (k == of_reference.count || of_reference.step[k] != of_run.step[i]) continue;
        add_evaluation(split, &of_run, i, &of_reference, k, sign);
    }
    free(of_run.memory);
    free(of_reference.memory);
    return status;
}

void gap_split_free(gap_split *split) {
    free(split->step);
    *split = (gap_split){0};
}
