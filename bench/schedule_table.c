#include "schedule_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static schedule_row *row_of(schedule_table *s, const char *op, bool backward) {
    int i = 0;
    while (i < s->rows && (strcmp(s->row[i].op, op) || s->row[i].backward != backward)) i++;
    if (i == TABLE_MOST_ROWS) i--;
    if (i == s->rows) s->row[s->rows++] = (schedule_row){.op = op, .backward = backward};
    return &s->row[i];
}

void schedule_table_bytes(schedule_table *s, const tape *t) {
    for (const tape_node *n = t->last; n; n = n->before) {
        int64_t forward = n->out->count, backward = n->out->count;
        if (n->reads & READS_OUT) backward += n->out->count;
        for (int i = 0; i < NODE_INPUTS && n->in[i]; i++) {
            forward += n->in[i]->count;
            if (n->reads & READS_IN(i)) backward += n->in[i]->count;
            if (n->in[i]->wants_grad) backward += n->in[i]->count;
        }
        row_of(s, n->op, false)->bytes += (double)forward * sizeof(real);
        row_of(s, n->op, true)->bytes += (double)backward * sizeof(real);
    }
}

void schedule_table_measured(schedule_table *s, int plan, int round, const tape_profile *profile,
                             double seconds) {
    s->step[plan][round] = seconds;
    for (const tape_profile *op = profile; op < profile + PROFILE_OPS && op->op; op++) {
        row_of(s, op->op, false)->measured[plan] += op->forward / s->rounds;
        row_of(s, op->op, true)->measured[plan] += op->backward / s->rounds;
    }
}

static bool predict(schedule_table *s, int plan, const schedule_costs *costs) {
    const schedule_log *logs = s->log[plan];
    for (int r = 1; r < s->rounds; r++)
        if (logs[r].phases != logs->phases || logs[r].count != logs->count) return false;
    for (int64_t p = 0; p < logs->phases; p++)
        row_of(s, logs->phase[p].op, logs->phase[p].backward)->predicted[plan] +=
            schedule_phase_seconds(logs, s->rounds, p, costs);
    for (schedule_row *r = s->row; r < s->row + s->rows; r++)
        if (s->bandwidth > 0 && r->predicted[plan] < r->bytes / s->bandwidth)
            r->predicted[plan] = r->bytes / s->bandwidth;
    return true;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_step(schedule_table *s, int plan) {
    double *x = s->step[plan];
    qsort(x, (size_t)s->rounds, sizeof *x, ascending);
    return (x[(s->rounds - 1) / 2] + x[s->rounds / 2]) / 2;
}

static void print_head(const schedule_table *s, const schedule_costs *costs) {
    for (int i = 0; i < s->plans; i++)
        if (s->threads[i] > 1)
            printf("# %d threads: fork and join %.1f us, barrier %.1f us, %s\n", s->threads[i],
                   1e6 * costs->fork[s->threads[i]], 1e6 * costs->barrier[s->threads[i]],
                   s->threads[i] <= costs->measured ? "measured" : "in proportion to threads");
    printf("# ms; predicted: longest thread of each phase, processor time, median of %d; measured: "
           "by the clock\n# memory of all threads together: ",
           s->rounds);
    if (s->bandwidth > 0)
        printf("%.1f GB/s\n", 1e-9 * s->bandwidth);
    else
        printf("no limit\n");
    printf("model\top\tpass\tMB");
    for (int i = 0; i < s->plans; i++) printf("\tpredicted %d", s->threads[i]);
    for (int i = 0; i < s->plans && s->threads[i] <= s->cores; i++)
        printf("\tmeasured %d", s->threads[i]);
    putchar('\n');
}

static void print_row(const schedule_table *s, const char *model, const char *pass,
                      const schedule_row *r) {
    printf("%s\t%s\t%s\t%.1f", model, r->op, pass, 1e-6 * r->bytes);
    for (int i = 0; i < s->plans; i++) printf("\t%.2f", 1e3 * r->predicted[i]);
    for (int i = 0; i < s->plans && s->threads[i] <= s->cores; i++)
        printf("\t%.2f", 1e3 * r->measured[i]);
    putchar('\n');
}

bool schedule_table_print(schedule_table *s, const char *model, const schedule_costs *costs) {
    schedule_row all = {.op = "step"};
    for (int i = 0; i < s->plans; i++)
        if (!predict(s, i, costs)) return false;
    print_head(s, costs);
    for (const schedule_row *r = s->row; r < s->row + s->rows; r++) {
        all.bytes += r->bytes;
        for (int i = 0; i < s->plans; i++) all.predicted[i] += r->predicted[i];
        print_row(s, model, r->backward ? "backward" : "forward", r);
    }
    for (int i = 0; i < s->plans && s->threads[i] <= s->cores; i++)
        all.measured[i] = median_step(s, i);
    print_row(s, model, "both", &all);
    return true;
}

void schedule_table_free(schedule_table *s) {
    for (int i = 0; i < TABLE_MOST_PLANS; i++)
        for (int r = 0; r < SCHEDULE_MOST_LOGS; r++) schedule_free(&s->log[i][r]);
}
