/* diagnose_table.c -- a diagnosis as a table: a row for each run and question. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/diagnose.h"
#include "diagnose/diagnosis.h"

static void declare_columns(tsv *t) {
    tsv_column(t, "run", "run file as given");
    tsv_column(t, "question", "its id");
    tsv_column(t, "verdict",
               "found, in-order, not-told: harm cannot be told from it, or not-asked: "
               "the file lacks what it needs");
    tsv_column(t, "rank", "of the findings of the run, the weightiest is 1; 0: not found");
    tsv_column(t, "severity", "severe, notable, minor; - without a finding");
    tsv_column(t, "statistic", "what was measured, at the worst site");
    tsv_column(t, "value", "estimate");
    tsv_column(t, "low", "lower end of its 95 % interval");
    tsv_column(t, "high", "upper end");
    tsv_column(t, "limit",
               "found where the interval is beyond it; of updates a step also below 0.9");
    tsv_column(t, "usual_low", "least value at a site of the runs of the usual range");
    tsv_column(t, "usual_high", "largest value");
    tsv_column(t, "usual_runs", "runs that the range is from; 0: none");
    tsv_column(t, "site", "worst site, - where the question is about the run");
    tsv_column(t, "sites_asked", "sites with an estimate of any statistic of the question");
    tsv_column(t, "sites_beyond",
               "sites with a statistic of the question whose interval is beyond its limit");
    tsv_column(t, "first_step", "steps that the value is from; -1: none");
    tsv_column(t, "last_step", "the last of them");
    tsv_column(t, "at_step", "first single step that it is about; -1: none");
    tsv_column(t, "text", "what it says; not asked: why");
    tsv_column(t, "criterion", "when it is found");
    tsv_column(t, "source", "where statistic and criterion are from");
    tsv_column(t, "advice", "of a finding: what to try in this run");
    tsv_column(t, "figure", "command in front of the run file that shows it");
    tsv_column(t, "conclusion", "the verdict on the run, as its page prints it");
    tsv_header(t);
}

static int rank_of(const int *order, int found, int number) {
    for (int i = 0; i < found; i++)
        if (order[i] == number) return i + 1;
    return 0;
}

static void write_numbers(const subject *s, const answer *a, tsv *t) {
    healthy_range r = {0};
    const bool known = a->range_of && healthy_find(s, a->range_of, &r);
    const bool asked = a->verdict != NOT_ASKED;
    tsv_text(t, asked && a->statistic ? a->statistic : "-");
    tsv_real(t, asked ? a->e.value : NAN);
    tsv_real(t, asked ? a->e.low : NAN);
    tsv_real(t, asked ? a->e.high : NAN);
    tsv_real(t, asked ? a->limit : NAN);
    tsv_real(t, known ? r.low : NAN);
    tsv_real(t, known ? r.high : NAN);
    tsv_int(t, r.runs);
}

static void write_row(const diagnosis *d, int number, const char *conclusion, tsv *t) {
    static const char *const verdicts[] = {"not-asked", "in-order", "found", "not-told"};
    static const char *const severities[] = {"-", "minor", "notable", "severe"};
    const subject *s = &d->s;
    const question *q = &diagnose_questions[number];
    const answer *a = &d->answers[number];
    tsv_text(t, s->path);
    tsv_text(t, q->id);
    tsv_text(t, verdicts[a->verdict]);
    tsv_int(t, rank_of(d->order, d->found, number));
    tsv_text(t, severities[a->verdict == FOUND ? a->severity : 0]);
    write_numbers(s, a, t);
    tsv_text(t, a->shown ? answer_site(s, a, 0) : "-");
    tsv_int(t, a->asked);
    tsv_int(t, a->beyond);
    tsv_int(t, a->to ? a->from : -1);
    tsv_int(t, a->to ? a->to : -1);
    tsv_int(t, a->steps_shown ? a->at[0] : -1);
    tsv_text(t, a->verdict == NOT_ASKED ? a->reason : a->says);
    tsv_text(t, q->criterion);
    tsv_text(t, q->source);
    tsv_text(t, a->verdict == FOUND ? a->advice : "-");
    tsv_text(t, question_figure(q, a));
    tsv_text(t, conclusion);
}

static sr_status write_run(const run_set *set, int self, diagnose_synchronizes_fn *synchronizes,
                           tsv *t, int *worst, sr_failure *why) {
    diagnosis d;
    neighbour other;
    char conclusion[256] = "";
    sr_status status =
        diagnosis_make_beside(&d, set->run[self], set->path[self],
                              diagnosis_neighbour(set, self, &other), synchronizes, why);
    if (status == SR_OK) diagnosis_conclude(&d, conclusion, sizeof conclusion);
    for (int i = 0; i < diagnose_question_count && status == SR_OK; i++)
        write_row(&d, i, conclusion, t);
    if (status == SR_OK && diagnosis_worst(&d) > *worst) *worst = diagnosis_worst(&d);
    diagnosis_free(&d);
    return status;
}

static void note_damage(const run_set *set, tsv *t) {
    const char *damage;
    for (int r = 0; r < set->count; r++)
        for (int i = 0; (damage = sr_run_damage(set->run[r], i)); i++)
            tsv_note(t, "warning", "%s", damage);
}

sr_status diagnose_table(char **paths, int count, diagnose_synchronizes_fn *synchronizes,
                         const char *command, FILE *out, int *worst, sr_failure *why) {
    run_set set;
    *worst = 0;
    tsv t;
    sr_status status = run_set_open(&set, count, paths, why);
    if (status == SR_OK) {
        tsv_begin(&t, out, "statrec diagnose", command);
        run_set_describe(&set, &t);
        note_damage(&set, &t);
        declare_columns(&t);
    }
    for (int i = 0; i < set.count && status == SR_OK; i++)
        status = write_run(&set, i, synchronizes, &t, worst, why);
    if (status == SR_OK) status = tsv_finish(out, why);
    run_set_close(&set);
    return status;
}

sr_status diagnose_open_whole(run_set *set, int count, char **paths, sr_failure *why) {
    sr_status status = run_set_open(set, count, paths, why);
    const char *damage;
    for (int r = 0; r < set->count && status == SR_OK; r++)
        if ((damage = sr_run_damage(set->run[r], 0)))
            status = sr_fail(why, SR_FORMAT, "%s", damage);
    return status;
}

void diagnose_warn_damage(const tool *t, int count, char **paths) {
    run_warn_damage_paths(t, count, paths);
}
