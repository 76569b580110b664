/* diagnosis.h -- declarations for all parts of a diagnosis: the run, estimates with intervals,
 * answers.
 *
 * A question is one row of diagnose_questions.c: the question, the statistic that answers it, the
 * criterion and its source, and one function that looks. Nothing is found without an interval whose
 * nearer end is beyond the limit.
 */
#ifndef DIAGNOSE_DIAGNOSIS_H
#define DIAGNOSE_DIAGNOSIS_H

#include <math.h>

#include "analysis/frame/step_range.h"
#include "diagnose/diagnose.h"

enum {
    LEAST_STEPS = 20, /* least steps of an interval, as in bootstrap.c */
    SITES_SHOWN = 3,
    STEPS_SHOWN = 3
};

/* A limit is this many times the end of the usual range: a few runs of one model span less than the
 * usual range. */
#define HEALTHY_MARGIN 1.5

/* -- the run: diagnosed_run.c, diagnosed_columns.c ------------------------------------------ */

/* Another run that a question may hold this one against. */
typedef struct neighbour {
    const sr_runfile *run;
    const char *path;
} neighbour;

/* Data read from a run; changes while a const subject is asked. diagnosed_columns.c */
typedef struct kept_columns kept_columns;

typedef struct subject {
    const sr_runfile *run;
    const sr_run_info *info;
    const char *path;
    step_window window;   /* without the burn-in of running statistics */
    int64_t first, count; /* rows of /scalars in it */
    int64_t *step;        /* [count] */
    bool *usual;          /* [count]: passes with at least half of the usual tokens */
    int64_t shorter;      /* passes that are not */
    int64_t sites, batch_sites, observed_sites; /* sites of the model: no replicas */
    int64_t merged_sites;                       /* whose passes of a step are one batch */
    int64_t begin;                              /* first step of the run, in the burn-in or not */
    bool trained;                               /* by statrec train: advice may name its options */
    bool watched;                               /* recorded by statrec.watch */
    diagnose_synchronizes_fn *synchronizes;     /* set after subject_open; NULL: no method does */
    const neighbour *beside;                    /* set after subject_open; NULL: no other run */
    kept_columns *columns;
} subject;

/* To be freed after a failure too. */
sr_status subject_open(subject *s, const sr_runfile *run, const char *path, sr_failure *why);
void subject_free(subject *s);
/* True when the file has all inputs of the statistic (a scalar or a form of some). */
bool subject_has(const subject *s, const char *statistic);
/* The first row of the window from which on the statistic is judged. Discrepancies are judged in
 * the second half of training, as gaps are, since evaluation uses the last running statistics. */
int64_t subject_judged(const subject *s, const char *name);
/* value [count]: NaN where the file has none, in shorter passes, and before subject_judged. If the
 * passes of a step are merged, discrepancies and samples come from single passes: NaN if the file
 * has none of them. */
sr_status subject_column(const subject *s, int64_t site, const char *statistic, double *value,
                         sr_failure *why);
/* The same for all steps of the run, burn-in and shorter passes too: value [info->steps]. */
sr_status subject_history(const subject *s, int64_t site, const char *statistic, double *value,
                          sr_failure *why);
/* True of a replica as in globs.h: no question is about it. */
bool subject_is_replica(const subject *s, int64_t site);
/* False if a running value is known to start at another value than `start`: the run loaded it
 * (--weights), or the vectors of its first step show it. */
sr_status subject_begins_with(const subject *s, int64_t site, const char *vector, float start,
                              bool *begins, sr_failure *why);
/* `how`, a blank and an option of statrec train in brackets, of runs that have such; else "". */
const char *subject_how(const subject *s, const char *how);
/* Rows of /vectors in the window; row *first is the first. */
sr_status subject_vectors(const subject *s, int64_t *first, int64_t *count, sr_failure *why);
/* Memory for `columns` columns of the window or of the run; NULL and *why when out of memory. */
double *subject_room(const subject *s, int columns, sr_failure *why);

/* -- estimates: diagnose_estimate.c ---------------------------------------------------------- */

typedef struct estimate {
    double value, low, high; /* NaN: none */
    int64_t steps;           /* finite values that it is from */
} estimate;
#define NO_ESTIMATE                                                                                \
    (estimate) {                                                                                   \
        NAN, NAN, NAN, 0                                                                           \
    }

/* Median of the finite values; the order of value [count] is kept. Circular block bootstrap over
 * steps, 95 %; NaN below LEAST_STEPS. */
sr_status estimate_median(const double *value, int64_t count, estimate *e, sr_failure *why);
/* sum a / sum b over pairs that are finite. */
sr_status estimate_ratio(const double *a, const double *b, int64_t count, estimate *e,
                         sr_failure *why);
#define TAIL_99   1
#define TAIL_MOST 2
/* The 99 % quantile or the largest of the finite values, as bootstrap_tails numbers them. A
 * resample's largest is at most the value: the interval ends there. */
sr_status estimate_tail(const double *value, int64_t count, int tail, estimate *e, sr_failure *why);
/* b against a, estimates from separate data: b/a with the ends that are farthest apart. */
estimate estimate_quotient(const estimate *b, const estimate *a);

/* -- cached columns: diagnosed_columns.c ------------------------------------------------------ */

kept_columns *columns_keep(void); /* NULL without memory */
void columns_drop(kept_columns *k);
/* Median of subject_column. name: a literal. */
sr_status columns_median(const subject *s, int64_t site, const char *name, estimate *e,
                         sr_failure *why);

/* -- usual ranges: diagnose_ranges.c --------------------------------------------------------- */

typedef struct healthy_range {
    const char *statistic, *kind; /* kind of the runs: "vision", "text", "watched" */
    double low, high;             /* range of the estimates of their sites */
    int runs, sites;
} healthy_range;

/* The usual range for a run of this kind, from the recorded runs of statrec train. For a watched
 * model also from watched models, of any kind and size. False when no recorded run has it. */
bool healthy_find(const subject *s, const char *name, healthy_range *range);
/* HEALTHY_MARGIN times its upper end; NaN without one. */
double healthy_limit(const subject *s, const char *name);

/* A statistic at the worst site of runs whose gap is measured: those that lose nothing in
 * evaluation, and those that lose something (diagnose_gap.c). */
typedef struct harm_range {
    const char *statistic;
    double harmless_low, harmless_high;
    int harmless; /* runs */
    double harmful_low, harmful_high;
    int harmful;
} harm_range;

/* NULL when no recorded run has it. */
const harm_range *harm_find(const char *name);

/* -- answers: diagnose_verdict.c -------------------------------------------------------------- */

/* UNTOLD: asked, and neither found nor in order: the recorded data cannot show harm. */
typedef enum { NOT_ASKED, IN_ORDER, FOUND, UNTOLD } verdict;
typedef enum { MINOR = 1, NOTABLE, SEVERE } severity;

typedef struct site_estimate {
    int64_t site;
    estimate e;
} site_estimate;

typedef struct answer {
    verdict verdict;
    severity severity; /* severity of a finding */
    const char *statistic;
    estimate e;                   /* at the worst site */
    double limit;                 /* beyond it something is found */
    double limit_low, limit_high; /* found below or above these; 0: only beyond `limit` */
    double severe;                /* 0: none. From here on it is severe, from `limit` on notable */
    bool below;                   /* beyond: below the limit, not above */
    bool once;                    /* a single step is enough: ranked and judged by the value */
    bool vectors;                 /* from steps with vectors alone */
    bool whole;                   /* over all steps, the burn-in too */
    char unit[16];                /* printed before an exact number, "" for none */
    const char *in;               /* unit of the estimate, NULL for none */
    const char *range_of;
    const char *of_sites;           /* statistic of `top`; NULL: the one above */
    site_estimate top[SITES_SHOWN]; /* worst first */
    int shown;
    int64_t asked, beyond; /* sites; 0 asked: the question is about the run */
    bool by_others;        /* some of those beyond are so by another statistic of the question */
    int64_t from, to;      /* steps that it is from */
    int64_t at[STEPS_SHOWN];
    int steps_shown;   /* single steps that it is about */
    char says[2560];   /* sentences on a finding */
    char advice[1536]; /* advice for a finding in this run (diagnose_advice.c) */
    char figure[192];  /* command, without the run file, that shows it; "": the question's */
    char reason[256];  /* not asked: why */
} answer;

typedef sr_status measure_fn(const subject *s, int64_t site, const void *what, estimate *e,
                             sr_failure *why);

/* Measures every site and fills in `top`, `e` and the verdict against a->limit. Sites are ranked by
 * the nearer end of the interval, by the value if `once` is set. A site with NaN is not asked. */
sr_status answer_rank(const subject *s, measure_fn *measure, const void *what, answer *a,
                      sr_failure *why);
/* The same for a question of several statistics: a site counts once as asked, and as beyond if any
 * statistic is. at [sites]: what the statistics before found there. */
typedef struct site_count {
    bool asked, beyond;
} site_count;
sr_status answer_rank_of_several(const subject *s, measure_fn *measure, const void *what, answer *a,
                                 site_count *at, sr_failure *why);
/* a->asked and a->beyond of all the statistics. */
void answer_count(const subject *s, const site_count *at, answer *a);
/* [sites], for free(); NULL: out of memory. */
site_count *answer_counts(const subject *s, sr_failure *why);
/* The verdict about the run from a->e. */
void answer_judge(answer *a);
bool answer_is_beyond(const answer *a, const estimate *e);
/* severity, and below 1 how far beyond the limit: findings are ranked by it. */
double answer_weight(const answer *a);
void answer_says(answer *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The method of a site in a sentence; `without` at a tensor that no method normalizes. */
const char *method_of(const sr_run_site *site, const char *without);
/* Another figure than the question's, as this run has something else recorded. */
void answer_figure(answer *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
sr_status answer_not_asked(answer *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Asked at no site: for the reason that ranking them met, or else for this one. */
sr_status answer_nowhere(answer *a, const char *otherwise);
const char *answer_site(const subject *s, const answer *a, int i);

/* what: name of a statistic. Its median over the window. */
measure_fn measure_median;
/* The same if the statistic comes from the site's own method, and if only the observer has it
 * (sr_run_only_observed). */
measure_fn measure_own_median, measure_observed_median;

/* -- the gap: diagnose_gap.c ------------------------------------------------------------------- */

typedef struct gap {
    const sr_run_metric *metric; /* NULL: no pair */
    estimate e;                  /* over the second half, in the metric's unit; above 0: worse */
    double running, batch;       /* means of the same evaluations */
    int evaluations;             /* all that have both */
    double first, last;          /* the gap in the first and the last third of them */
    double running_last;         /* NAME in the last third */
    int64_t from, to;            /* steps of the second half's */
    double notable, severe;      /* limits, in the unit */
} gap;

/* The metric that the gap is of, with values of both kinds; NULL: none, or no batch statistics. */
sr_status gap_metric(const subject *s, const sr_run_metric **best, sr_failure *why);
sr_status gap_measure(const subject *s, gap *g, sr_failure *why);
/* 0: not found. The value reaches a limit, and the interval is above zero. */
severity gap_severity(const gap *g);
/* Measured, and either found or with an interval that ends below the limit. */
bool gap_is_told(const gap *g);
/* A site normalizes by other statistics in training than in evaluation. */
bool gap_is_possible(const subject *s);
const sr_run_metric *gap_partner(const sr_runfile *run, const sr_run_metric *m);
/* Value, interval, trend, and the part of the difference to the run beside it. */
sr_status gap_tell(const subject *s, const gap *g, answer *a, sr_failure *why);
void gap_tell_number(const gap *g, answer *a);

/* -- questions ------------------------------------------------------------------------------- */

typedef struct question {
    const char *id, *title, *asks;
    const char *needs;     /* datasets, in words */
    const char *criterion; /* when something is found */
    const char *source;    /* source of statistic and criterion */
    const char *figure;    /* command, without the run file, that shows any finding */
    sr_status (*look)(const subject *s, answer *a, sr_failure *why);
    bool general;  /* about the run, whatever normalizes it */
    bool headline; /* its answer is at the head of the page, found or not */
} question;

/* Command, without the run file, that shows the finding. */
const char *question_figure(const question *q, const answer *a);

extern const question diagnose_questions[];
extern const int diagnose_question_count;
/* All questions to one run. A question whose data cannot be read is not asked. */
typedef struct diagnosis {
    subject s;
    answer *answers;   /* [diagnose_question_count] */
    int *order, found; /* [found]: questions with findings, by weight */
} diagnosis;
/* Call diagnosis_free after a failure, too. */
sr_status diagnosis_make(diagnosis *d, const sr_runfile *run, const char *path,
                         diagnose_synchronizes_fn *synchronizes, sr_failure *why);
/* The same beside another run, NULL for none. */
sr_status diagnosis_make_beside(diagnosis *d, const sr_runfile *run, const char *path,
                                const neighbour *beside, diagnose_synchronizes_fn *synchronizes,
                                sr_failure *why);
/* Run number `self` of a set is compared with the first, and the first with the second. NULL:
 * alone. other: memory for it. */
const neighbour *diagnosis_neighbour(const run_set *set, int self, neighbour *other);
/* The largest severity among the findings; 0: none. */
int diagnosis_worst(const diagnosis *d);
/* The verdict in a line, as the page prints it. */
void diagnosis_conclude(const diagnosis *d, char *text, size_t size);
void diagnosis_free(diagnosis *d);

sr_status look_divergence(const subject *s, answer *a, sr_failure *why);
sr_status look_would_bn(const subject *s, answer *a, sr_failure *why);
sr_status look_inference(const subject *s, answer *a, sr_failure *why);
sr_status look_outliers(const subject *s, answer *a, sr_failure *why);
sr_status look_gradient(const subject *s, answer *a, sr_failure *why);
sr_status look_nu(const subject *s, answer *a, sr_failure *why);
sr_status look_dead(const subject *s, answer *a, sr_failure *why);
sr_status look_growth(const subject *s, answer *a, sr_failure *why);
sr_status look_padding(const subject *s, answer *a, sr_failure *why);
sr_status look_rows(const subject *s, answer *a, sr_failure *why);
sr_status look_alike(const subject *s, answer *a, sr_failure *why);
sr_status look_alpha(const subject *s, answer *a, sr_failure *why);
sr_status look_embedding(const subject *s, answer *a, sr_failure *why);
sr_status look_momentum(const subject *s, answer *a, sr_failure *why);

/* The worst discrepancy between batch and running statistics, each against its own limit: of mean
 * and deviation where they are the observer's, or of what sites of batch statistics divide by
 * themselves. */
/* also: the other statistic of the worst, where that is found too; else not FOUND. */
sr_status discrepancy_rank(const subject *s, bool observed, answer *a, answer *also,
                           sr_failure *why);

/* As measure_own_median; nothing where the divisor's bias alone makes tid_var. */
measure_fn measure_discrepancy;
/* *broken: the site's running values are not finite to the end, and the loss is. */
sr_status momentum_broken(const subject *s, int64_t site, bool *broken, sr_failure *why);

/* -- advice: diagnose_advice.c ----------------------------------------------------------------- */

/* Fills a->advice of a finding with the pieces that apply to this run and site; after a failure
 * too. */
sr_status advice_write(const subject *s, const question *q, answer *a, sr_failure *why);
/* "SITE=norm,SITE=norm", then the run's value of --norm-at: the first words win. False, with an
 * incomplete text, if it needs more than `size` bytes. */
bool advice_norm_at(const subject *s, const int64_t *site, int64_t sites, const char *norm,
                    char *text, size_t size);

/* Measures that have a usual range. */
measure_fn measure_outliers, measure_dead, measure_growth, measure_alike, measure_slow,
    measure_padding, measure_embedding, measure_psi, measure_expected;

/* Opens runs that ranges are computed from: a damaged one is rejected. Close them after a failure,
 * too. */
sr_status diagnose_open_whole(run_set *set, int count, char **paths, sr_failure *why);

#endif
