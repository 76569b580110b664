/* diagnose_page.c -- a diagnosis as one page of text per run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/tsv.h"
#include "diagnose/diagnose.h"
#include "diagnose/diagnosis.h"

enum { WIDTH = 100, LABEL = 12, INDENT = 4 };

/* Words of the text in lines of at most WIDTH, the first after a label, the others below it. */
static void paragraph(FILE *out, const char *label, const char *text) {
    int at = INDENT + LABEL;
    bool begun = false;
    if (!text[0]) return;
    fprintf(out, "%*s%-*s", INDENT, "", LABEL, label);
    for (const char *word = text; *word;) {
        const int length = (int)strcspn(word, " ");
        if (begun && at + 1 + length > WIDTH) {
            fprintf(out, "\n%*s", INDENT + LABEL, "");
            at = INDENT + LABEL;
            begun = false;
        }
        if (begun) fputc(' ', out);
        tsv_plain(out, word, (size_t)length);
        at += begun + length;
        begun = true;
        word += length + (word[length] == ' ');
    }
    fputc('\n', out);
}

/* "0.21 [0.15, 0.27]"; an event is exact. */
static void write_estimate(const answer *a, char *text, size_t size) {
    if (a->unit[0])
        snprintf(text, size, "%s %.9g", a->unit, a->e.value);
    else
        snprintf(text, size, "%.3g [%.3g, %.3g]", a->e.value, a->e.low, a->e.high);
}

static const char *measured_in(const answer *a) {
    return a->in ? a->in : "";
}

static void write_range(const subject *s, const answer *a, char *text, size_t size) {
    healthy_range r;
    const bool known = a->range_of && healthy_find(s, a->range_of, &r);
    const char *plural = known && r.runs > 1 ? "s" : "", *side = a->below ? "below" : "above";
    if (a->limit_high > 0) {
        snprintf(text, size, "found below %.3g or above %.3g", a->limit_low, a->limit_high);
        return;
    }
    if (a->severe > 0)
        snprintf(text, size, "notable from %.3g, severe from %.3g on, interval above zero",
                 a->limit, a->severe);
    else if (known && r.sites > r.runs)
        snprintf(text, size, "%.3g to %.3g (%d sites of %d %s run%s); found %s %.3g", r.low, r.high,
                 r.sites, r.runs, r.kind, plural, side, a->limit);
    else if (known)
        snprintf(text, size, "%.3g to %.3g (%d %s run%s); found %s %.3g", r.low, r.high, r.runs,
                 r.kind, plural, side, a->limit);
    else
        snprintf(text, size, "found %s %.3g", side, a->limit);
}

static void write_sites(const subject *s, const answer *a, char *text, size_t size) {
    text[0] = 0;
    for (int i = 0; i < a->shown && (i == 0 || a->asked); i++) {
        const size_t used = strlen(text);
        const estimate *e = &a->top[i].e;
        if (!a->asked)
            snprintf(text + used, size - used, "%s", answer_site(s, a, i));
        else
            snprintf(text + used, size - used, "%s%s%s%s %.3g [%.3g, %.3g]", i ? ", " : "",
                     i || !a->of_sites ? "" : a->of_sites, i || !a->of_sites ? "" : " at ",
                     answer_site(s, a, i), e->value, e->low, e->high);
    }
    const size_t used = strlen(text);
    if (a->asked > a->shown || a->beyond > 1)
        snprintf(text + used, size - used, "; %lld of %lld sites are beyond%s",
                 (long long)a->beyond, (long long)a->asked,
                 a->by_others ? ", some by another statistic" : "");
}

static void write_steps(const answer *a, char *text, size_t size) {
    text[0] = 0;
    if (a->to) snprintf(text, size, "%lld to %lld", (long long)a->from, (long long)a->to);
    for (int i = 0; i < a->steps_shown; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%lld",
                 i       ? ", "
                 : a->to ? "; at "
                         : "",
                 (long long)a->at[i]);
    }
}

/* Other properties that the statistic depends on (comparable.c). */
static sr_status write_control(const subject *s, const answer *a, char *text, size_t size,
                               sr_failure *why) {
    sr_instead instead = SR_INIT(sr_instead, .reason = "");
    estimate rows = NO_ESTIMATE;
    text[0] = 0;
    if (!sr_depends(a->statistic, &instead) || !a->shown) return SR_OK;
    sr_failure unread = {0}; /* then it is nan rows */
    if (measure_median(s, a->top[0].site, "rows", &rows, &unread) == SR_MEMORY)
        return *why = unread, SR_MEMORY;
    snprintf(text, size, "%s %s; %.6g rows here", a->statistic, instead.reason, rows.value);
    return SR_OK;
}

/* A command to be copied: on one line, however long. */
static sr_status write_command(const subject *s, const char *command, FILE *out, sr_failure *why) {
    char *path = tool_argument(s->path);
    if (!path) return sr_fail(why, SR_MEMORY, "out of memory");
    fprintf(out, "%*s%-*s%s ", INDENT, "", LABEL, "see", command);
    tsv_plain(out, path, strlen(path));
    fputc('\n', out);
    free(path);
    return SR_OK;
}

static sr_status write_finding(const subject *s, const question *q, const answer *a, int number,
                               FILE *out, sr_failure *why) {
    static const char *const word[] = {"", "minor", "notable", "severe"};
    char text[1024], number_text[128];
    fprintf(out, "\n%2d. %s (%s, %s)\n", number, q->title, word[a->severity], q->id);
    paragraph(out, "", q->headline ? "See the top of this page." : a->says);
    write_estimate(a, number_text, sizeof number_text);
    snprintf(text, sizeof text, "%s %s %s", a->statistic, number_text, measured_in(a));
    paragraph(out, "measured", text);
    if (!a->unit[0]) {
        write_range(s, a, text, sizeof text);
        paragraph(out, a->range_of ? "usual" : "limit", text);
    }
    write_sites(s, a, text, sizeof text);
    paragraph(out, "sites", text);
    write_steps(a, text, sizeof text);
    paragraph(out, "steps", text);
    sr_status status = write_control(s, a, text, sizeof text, why);
    if (status != SR_OK) return status;
    paragraph(out, "control", text);
    snprintf(text, sizeof text, "%s (%s)", q->criterion, q->source);
    paragraph(out, "criterion", text);
    paragraph(out, "try", a->advice);
    return write_command(s, question_figure(q, a), out, why);
}

/* "> 0.3": where something would be found. */
static void write_limit(const answer *a, char *text, size_t size) {
    const char *beyond = a->below ? "<" : a->severe > 0 ? ">=" : ">";
    if (a->limit_high > 0)
        snprintf(text, size, "< %.3g, > %.3g", a->limit_low, a->limit_high);
    else
        snprintf(text, size, "%-2s%.3g", beyond, a->limit);
}

/* One line of the table of questions that are in order. */
static void write_in_order(const subject *s, const question *q, const answer *a, FILE *out) {
    char number[128], limit[64], range[96] = "-";
    healthy_range r;
    write_estimate(a, number, sizeof number);
    if (a->range_of && healthy_find(s, a->range_of, &r))
        snprintf(range, sizeof range, "%.3g to %.3g (%d/%d)", r.low, r.high, r.sites, r.runs);
    write_limit(a, limit, sizeof limit);
    fprintf(out, "%*s%-*s%-27s%-30s%-26s%-13s", INDENT, "", LABEL, q->id, a->statistic, number,
            range, limit);
    tsv_escape(out, a->shown ? answer_site(s, a, 0) : "-");
    fputc('\n', out);
    paragraph(out, "", q->headline ? "" : a->says);
}

static void write_table(const subject *s, const answer *answers, FILE *out) {
    bool any = false;
    for (int i = 0; i < diagnose_question_count; i++) {
        if (answers[i].verdict != IN_ORDER) continue;
        if (!any)
            fprintf(out,
                    "\nAsked, in order; usual: least to largest at the given numbers of sites "
                    "and runs\n"
                    "%*s%-*s%-27s%-30s%-26s%-13s%s\n",
                    INDENT, "", LABEL, "question", "statistic", "worst [95 %]",
                    "usual (sites/runs)", "found", "worst site");
        any = true;
        write_in_order(s, &diagnose_questions[i], &answers[i], out);
    }
}

static sr_status write_batch(const subject *s, FILE *out, sr_failure *why) {
    char text[160];
    estimate rows = NO_ESTIMATE, samples = NO_ESTIMATE;
    if (!s->sites) return SR_OK;
    sr_status status = measure_median(s, 0, "rows", &rows, why);
    if (status == SR_OK) status = measure_median(s, 0, "samples", &samples, why);
    if (status != SR_OK) return status;
    snprintf(text, sizeof text,
             "%lld, %lld with statistics over the batch, %lld where they are observed",
             (long long)s->sites, (long long)s->batch_sites, (long long)s->observed_sites);
    paragraph(out, "sites", text);
    if (!isfinite(rows.value)) return SR_OK;
    snprintf(text, sizeof text, "%.6g rows at the first site", rows.value);
    if (isfinite(samples.value))
        snprintf(text, sizeof text, "%.6g rows at the first site, of %.6g samples", rows.value,
                 samples.value);
    paragraph(out, "batch", text);
    return SR_OK;
}

static const char *or_unknown(const char *text) {
    return text && text[0] ? text : "?";
}

/* ", no burn-in skipped: ...": the reason, "" where the run has no burn-in. */
static const char *no_burn_in(const subject *s, char *text, size_t size) {
    if (!s->window.no_alpha) return "";
    snprintf(text, size, ", no burn-in skipped (site %s has no alpha)", s->window.no_alpha);
    return text;
}

static sr_status write_head(const subject *s, FILE *out, sr_failure *why) {
    char text[512], words[SR_NAME_SIZE + 64];
    tsv_escape(out, s->path);
    fputc('\n', out);
    snprintf(text, sizeof text, "%s, norm %s, data %s, seed %llu, %lld steps, %s",
             or_unknown(s->info->model), sr_run_main_norm(s->run), or_unknown(s->info->data),
             (unsigned long long)s->info->seed, (long long)s->info->steps,
             strcmp(s->info->status, "running") == 0 ? "unfinished" : or_unknown(s->info->status));
    paragraph(out, "run", text);
    if (s->count)
        snprintf(
            text, sizeof text,
            "steps %lld to %lld%s; %lld passes with less than half of the usual tokens are skipped",
            (long long)s->step[0], (long long)s->step[s->count - 1],
            s->window.cut ? ", after the burn-in" : no_burn_in(s, words, sizeof words),
            (long long)s->shorter);
    else
        snprintf(text, sizeof text, "no step after the burn-in of running statistics (%lld steps)",
                 (long long)s->window.startup);
    paragraph(out, "judged", text);
    return write_batch(s, out, why);
}

/* Writes the answers before the findings, found or not. */
static void write_headlines(const answer *answers, FILE *out) {
    for (int i = 0; i < diagnose_question_count; i++) {
        if (!diagnose_questions[i].headline || answers[i].verdict == NOT_ASKED) continue;
        fprintf(out, "\n%s\n", diagnose_questions[i].title);
        paragraph(out, "", answers[i].says);
    }
}

static const answer *answer_to(const answer *answers, const char *id) {
    for (int i = 0; i < diagnose_question_count; i++)
        if (strcmp(diagnose_questions[i].id, id) == 0) return &answers[i];
    return NULL;
}

/* True if the loss in evaluation is open, though the run may lose something. */
static bool lacks_gap(const subject *s, const answer *answers) {
    return gap_is_possible(s) && answer_to(answers, "inference")->verdict != IN_ORDER;
}

/* A run is healthy if the harmful faults could be checked: divergence, and the gap if training and
 * evaluation normalize by different statistics. */
static const char *verdict_without_finding(const subject *s, const answer *answers, int asked) {
    const bool diverged = answer_to(answers, "divergence")->verdict == NOT_ASKED;
    int about = 0;
    for (int i = 0; i < diagnose_question_count; i++)
        about += answers[i].verdict != NOT_ASKED && !diagnose_questions[i].general;
    if (!asked) return "NO VERDICT: the file answers none of the questions";
    if (diverged) return "NOTHING FOUND in what could be asked; whether it diverged is not known";
    if (lacks_gap(s, answers))
        return answer_to(answers, "inference")->in
                   ? "NOTHING FOUND in what could be asked; what evaluation loses is not certain"
                   : "NOTHING FOUND in what could be asked; what evaluation loses is not measured";
    if (about) return "HEALTHY: nothing found";
    return "NOTHING FOUND in what could be asked; no statistics over the batch are recorded";
}

/* Advice on recordings that would give the next run a clear verdict. */
static void write_record(const subject *s, const answer *answers, FILE *out) {
    char text[256];
    if (!lacks_gap(s, answers)) return;
    if (answer_to(answers, "inference")->in)
        snprintf(text, sizeof text, "more evaluations in the second half of training%s",
                 subject_how(s, " (--validate-interval-updates)"));
    else
        snprintf(text, sizeof text,
                 "validation with running and with batch statistics%s, at least three times in the "
                 "second half of training%s",
                 s->trained ? " (--validate-batch)" : ", as NAME and NAME_batch",
                 subject_how(s, " (--validate-interval-updates)"));
    paragraph(out, "record", text);
}

void diagnosis_conclude(const diagnosis *d, char *text, size_t size) {
    int asked = 0;
    for (int i = 0; i < diagnose_question_count; i++) asked += d->answers[i].verdict != NOT_ASKED;
    if (d->found)
        snprintf(text, size, "%d FINDING%s, the weightiest first", d->found,
                 d->found > 1 ? "S" : "");
    else
        snprintf(text, size, "%s", verdict_without_finding(&d->s, d->answers, asked));
    const size_t used = strlen(text);
    snprintf(text + used, size - used, " (%d of %d questions asked, %d could not be asked)", asked,
             diagnose_question_count, diagnose_question_count - asked);
}

static sr_status write_verdict(const diagnosis *d, FILE *out, sr_failure *why) {
    char text[256];
    sr_status status = SR_OK;
    bool asked = false;
    for (int i = 0; i < diagnose_question_count; i++)
        asked = asked || d->answers[i].verdict != NOT_ASKED;
    diagnosis_conclude(d, text, sizeof text);
    fprintf(out, "\n%s\n", text);
    if (!d->found && asked) write_record(&d->s, d->answers, out);
    for (int i = 0; i < d->found && status == SR_OK; i++)
        status = write_finding(&d->s, &diagnose_questions[d->order[i]], &d->answers[d->order[i]],
                               i + 1, out, why);
    return status;
}

static void write_untold(const answer *answers, FILE *out) {
    bool any = false;
    for (int i = 0; i < diagnose_question_count; i++) {
        if (answers[i].verdict != UNTOLD) continue;
        if (!any) fprintf(out, "\nAsked, harm cannot be told from it\n");
        any = true;
        paragraph(out, diagnose_questions[i].id, answers[i].says);
    }
}

static void write_not_asked(const answer *answers, FILE *out) {
    bool any = false;
    for (int i = 0; i < diagnose_question_count; i++) {
        if (answers[i].verdict != NOT_ASKED) continue;
        if (!any) fprintf(out, "\nCould not be asked\n");
        any = true;
        paragraph(out, diagnose_questions[i].id, answers[i].reason);
    }
}

static sr_status write_run(const run_set *set, int self, diagnose_synchronizes_fn *synchronizes,
                           FILE *out, int *worst, sr_failure *why) {
    diagnosis d;
    neighbour other;
    const sr_runfile *run = set->run[self];
    sr_status status = diagnosis_make_beside(
        &d, run, set->path[self], diagnosis_neighbour(set, self, &other), synchronizes, why);
    if (status == SR_OK) status = write_head(&d.s, out, why);
    if (status == SR_OK) {
        const char *damage;
        for (int i = 0; (damage = sr_run_damage(run, i)); i++) paragraph(out, "damage", damage);
        write_headlines(d.answers, out);
        status = write_verdict(&d, out, why);
    }
    if (status == SR_OK) {
        write_untold(d.answers, out);
        write_table(&d.s, d.answers, out);
        write_not_asked(d.answers, out);
    }
    if (status == SR_OK && diagnosis_worst(&d) > *worst) *worst = diagnosis_worst(&d);
    diagnosis_free(&d);
    return status;
}

/* Writes which values of two pages can be compared. */
static void write_comparable(const run_set *set, FILE *out) {
    static const char *const names[] = {"tid_mean", "dist_mu", "g_mu_share"};
    char text[512];
    for (int r = 1; r < set->count; r++) {
        if (!sr_run_get_site(set->run[0], 0) || !sr_run_get_site(set->run[r], 0)) continue;
        const unsigned differ = sr_differences(set->run[0], 0, set->run[r], 0);
        fprintf(out, "\nBetween the first run and %s\n", set->path[r]);
        bool all = true;
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            if (sr_comparable(names[i], differ, text, sizeof text)) continue;
            all = false;
            paragraph(out, "", text);
        }
        if (all) paragraph(out, "", "their numbers may be compared, as far as the files tell");
    }
}

sr_status diagnose_page(char **paths, int count, diagnose_synchronizes_fn *synchronizes, FILE *out,
                        int *worst, sr_failure *why) {
    run_set set;
    *worst = 0;
    sr_status status = run_set_open(&set, count, paths, why);
    for (int i = 0; i < set.count && status == SR_OK; i++) {
        if (i) fprintf(out, "\n\n");
        status = write_run(&set, i, synchronizes, out, worst, why);
    }
    if (status == SR_OK && count > 1) write_comparable(&set, out);
    run_set_close(&set);
    return status;
}
