/* plot_report_sections.c -- the parts of a report, each in a separate process, as many at a time as
 * there are processors. They write parts of the page into files, which are joined in their order:
 * the answer, then the figures and tables of each question, then the runs. A figure that these runs
 * cannot fill is named at the end. */
#define _GNU_SOURCE /* MAP_ANONYMOUS beside POSIX */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/containers/vector.h"
#include "plot/plot_process.h"
#include "plot/report/plot_html.h"
#include "plot/report/plot_report.h"

typedef sr_status write_fn(report *r, sr_failure *why);

/* Results of a part's process, in shared memory. */
typedef struct part_end {
    sr_failure why;
    int drawn;
    char lacking[SR_FAILURE_TEXT];
} part_end;

typedef struct part {
    write_fn *write; /* NULL: a figure */
    char template[PLOT_PATH], name[PLOT_PATH], title[256];
    char path[PLOT_PATH + 32]; /* path of its part of the page */
    int question;              /* in plot_questions; the answer comes before, the runs after */
    report *r;
    part_end *end;
} part;

enum { ANSWER = -1, RUNS = PLOT_QUESTIONS };

typedef struct parts {
    part *row;
    size_t count;
    int64_t capacity;
    size_t shared; /* bytes */
    part_end *end;
    plot_scratch scratch; /* folder for the parts */
    int question;         /* whose figures are being listed */
} parts;

/* -- which ----------------------------------------------------------------------------------- */

/* Tables of a question: above its figures, or below. */
static const struct {
    const char *question;
    bool below;
    write_fn *write;
} tables[] = {
    {"healthy", false, report_findings},
    {"running", true, report_sites},
    {"compare", false, report_ends},
    {"compare", true, report_ratios},
};

static sr_status add_part(parts *s, int question, write_fn *write, const plot_template *t,
                          sr_failure *why) {
    if (!vector_reserve(&s->row, &s->capacity, (int64_t)s->count + 1, sizeof *s->row))
        return sr_fail(why, SR_MEMORY, "out of memory");
    part *row = &s->row[s->count];
    *row = (part){.write = write, .question = question};
    if (t) {
        snprintf(row->template, sizeof row->template, "%s", t->path);
        snprintf(row->name, sizeof row->name, "%s", t->name);
        snprintf(row->title, sizeof row->title, "%s", t->title);
    }
    snprintf(row->path, sizeof row->path, "%s/%zu.html", s->scratch.path, s->count++);
    return SR_OK;
}

static sr_status add_figure(plot_template *t, void *self, sr_failure *why) {
    parts *s = self;
    return t->question == s->question ? add_part(s, s->question, NULL, t, why) : SR_OK;
}

static sr_status add_tables(parts *s, bool below, sr_failure *why) {
    sr_status status = SR_OK;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0] && status == SR_OK; i++)
        if (tables[i].below == below &&
            strcmp(tables[i].question, plot_questions[s->question].word) == 0)
            status = add_part(s, s->question, tables[i].write, NULL, why);
    return status;
}

static sr_status list_parts(parts *s, sr_failure *why) {
    sr_status status = add_part(s, ANSWER, report_answer, NULL, why);
    for (s->question = 0; s->question < PLOT_QUESTIONS && status == SR_OK; s->question++) {
        status = add_tables(s, false, why);
        if (status == SR_OK) status = plot_template_each(add_figure, s, why);
        if (status == SR_OK) status = add_tables(s, true, why);
    }
    return status == SR_OK ? add_part(s, RUNS, report_settings, NULL, why) : status;
}

/* -- in a separate process -------------------------------------------------------------------- */

static sr_status write_figure(const part *s, sr_failure *why) {
    plot_template t = {0};
    sr_status status = plot_template_read(s->template, &t, why);
    if (status == SR_OK) status = report_figure(s->r, &t, why);
    plot_template_free(&t);
    return status;
}

static int write_part(void *context) {
    part *s = context;
    sr_failure *why = &s->end->why;
    s->r->page = fopen(s->path, "w");
    if (!s->r->page) return sr_fail(why, SR_IO, "%s: %s", s->path, strerror(errno)), 1;
    sr_status status = s->write ? s->write(s->r, why) : write_figure(s, why);
    const bool bad = ferror(s->r->page) != 0;
    if ((fclose(s->r->page) != 0 || bad) && status == SR_OK)
        status = sr_fail(why, SR_IO, "%s: cannot write: %s", s->path, strerror(errno));
    s->end->drawn = s->r->drawn;
    snprintf(s->end->lacking, sizeof s->end->lacking, "%s", s->r->lacking);
    return status != SR_OK;
}

/* -- all ------------------------------------------------------------------------------------- */

static sr_status share_ends(parts *s, report *r, sr_failure *why) {
    s->shared = s->count * sizeof *s->end;
    void *shared = mmap(NULL, s->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return sr_fail(why, SR_MEMORY, "out of memory");
    s->end = shared;
    for (size_t i = 0; i < s->count; i++) s->row[i].r = r, s->row[i].end = &s->end[i];
    return SR_OK;
}

/* A part's own message explains more than the exit status of its process. */
static sr_status run_parts(parts *s, sr_failure *why) {
    sr_failure ended = {0};
    plot_process *p = calloc(s->count, sizeof *p);
    if (!p) return sr_fail(why, SR_MEMORY, "out of memory");
    for (size_t i = 0; i < s->count; i++)
        p[i] = (plot_process){.call = write_part, .context = &s->row[i]};
    const sr_status status = plot_process_run_all(p, (int)s->count, NULL, &ended);
    free(p);
    for (size_t i = 0; i < s->count && status != SR_OK; i++)
        if (s->end[i].why.status != SR_OK) return *why = s->end[i].why, why->status;
    if (status != SR_OK) *why = ended;
    return status;
}

static sr_status copy_piece(const part *s, FILE *page, sr_failure *why) {
    char block[65536];
    FILE *in = fopen(s->path, "r");
    if (!in) return sr_fail(why, SR_IO, "%s: %s", s->path, strerror(errno));
    for (size_t size; (size = fread(block, 1, sizeof block, in)) > 0;) fwrite(block, 1, size, page);
    const bool bad = ferror(in) != 0;
    fclose(in);
    return bad ? sr_fail(why, SR_IO, "%s: cannot read", s->path) : SR_OK;
}

/* A figure that nothing could be drawn of, by name and reason at the end. */
static bool is_lacking(const part *s) {
    return !s->write && !s->end->drawn;
}

static bool has_question(const parts *s, int question) {
    for (size_t i = 0; i < s->count; i++)
        if (s->row[i].question == question && !is_lacking(&s->row[i])) return true;
    return false;
}

static void write_link(FILE *page, const char *before, const char *id, const char *text) {
    fprintf(page, "<a href=\"#%s", before);
    plot_html_text(page, id);
    fputs("\">", page);
    plot_html_text(page, text);
    fputs("</a>", page);
}

static const char *id_of(int question) {
    return plot_questions[question].word[0] ? plot_questions[question].word : "further";
}

static void write_contents(const parts *s, FILE *page) {
    fputs("<nav aria-label=\"Contents\"><ul>\n", page);
    for (int q = 0; q < PLOT_QUESTIONS; q++) {
        if (!has_question(s, q)) continue;
        fputs("<li>", page);
        write_link(page, "q-", id_of(q), plot_questions[q].asks);
        for (size_t i = 0; i < s->count; i++) {
            if (s->row[i].question != q || s->row[i].write || is_lacking(&s->row[i])) continue;
            fputc(' ', page);
            write_link(page, "", s->row[i].name, s->row[i].name);
        }
        fputs("</li>\n", page);
    }
    fputs("<li>", page);
    write_link(page, "", "report-settings", "Runs and configurations");
    fputs("</li>\n</ul></nav>\n", page);
}

static void write_lacking(const parts *s, FILE *page) {
    bool any = false;
    for (size_t i = 0; i < s->count; i++) {
        const part *row = &s->row[i];
        if (!is_lacking(row)) continue;
        fputs(any ? "; <b>"
                  : "<p class=\"missing\" id=\"report-not-drawn\">Figures that these runs "
                    "cannot fill: <b>",
              page);
        plot_html_text(page, row->name);
        fputs("</b> (", page);
        plot_html_text(page, row->end->lacking[0] ? row->end->lacking : "no run has its data");
        fputc(')', page);
        any = true;
    }
    if (any) fputs(".</p>\n", page);
}

static sr_status join_question(const parts *s, int question, report *r, sr_failure *why) {
    sr_status status = SR_OK;
    const bool titled = question >= 0 && question < PLOT_QUESTIONS;
    char id[PLOT_NAME + 8];
    if (!has_question(s, question)) return SR_OK;
    if (titled) {
        fputs("<section>\n", r->page);
        snprintf(id, sizeof id, "q-%s", id_of(question));
        report_title(r, 2, id, plot_questions[question].asks);
    }
    for (size_t i = 0; i < s->count && status == SR_OK; i++) {
        if (s->row[i].question != question || is_lacking(&s->row[i])) continue;
        status = copy_piece(&s->row[i], r->page, why);
        if (!s->row[i].write) r->drawn += s->end[i].drawn;
    }
    if (titled) fputs("</section>\n", r->page);
    return status;
}

static sr_status join_parts(const parts *s, report *r, sr_failure *why) {
    sr_status status = join_question(s, ANSWER, r, why);
    write_contents(s, r->page);
    for (int q = 0; q < PLOT_QUESTIONS && status == SR_OK; q++)
        status = join_question(s, q, r, why);
    if (status == SR_OK) status = join_question(s, RUNS, r, why);
    write_lacking(s, r->page);
    return status;
}

sr_status report_write_sections(report *r, sr_failure *why) {
    parts s = {0};
    sr_status status = plot_scratch_create(&s.scratch, why);
    if (status == SR_OK) status = list_parts(&s, why);
    if (status == SR_OK) status = share_ends(&s, r, why);
    if (status == SR_OK) status = run_parts(&s, why);
    if (status == SR_OK) status = join_parts(&s, r, why);
    if (s.end) munmap(s.end, s.shared);
    plot_scratch_remove(&s.scratch);
    free(s.row);
    return status;
}
