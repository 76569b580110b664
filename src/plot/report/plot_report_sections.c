/* plot_report_sections.c -- the sections of a report, each by a process of its own, as many at a
 * time as there are processors. They write parts of the page into files, which are joined in their
 * order. */
#define _GNU_SOURCE /* MAP_ANONYMOUS beside POSIX */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/containers/vector.h"
#include "plot/plot_process.h"
#include "plot/report/plot_report.h"
#include "plot/template/plot_files.h"
#include "plot/template/plot_sizes.h"
#include "plot/template/plot_template.h"

/* What the process of a section leaves, in memory that we share. */
typedef struct section_end {
    sr_failure why;
    int drawn;
} section_end;

typedef struct section {
    sr_status (*write)(report *r, sr_failure *why); /* NULL: a figure */
    char template[PLOT_PATH];
    char path[PLOT_PATH + 32]; /* of its part of the page */
    report *r;
    section_end *end;
} section;

typedef struct sections {
    section *row;
    size_t count;
    int64_t capacity;
    size_t shared; /* bytes */
    section_end *end;
    char directory[PLOT_PATH]; /* for the parts */
} sections;

/* -- which ----------------------------------------------------------------------------------- */

static sr_status sections_add(sections *s, sr_status (*write)(report *r, sr_failure *why),
                              const char *template, sr_failure *why) {
    if (!vector_reserve(&s->row, &s->capacity, (int64_t)s->count + 1, sizeof *s->row))
        return sr_fail(why, SR_MEMORY, "out of memory");
    section *row = &s->row[s->count];
    *row = (section){.write = write};
    snprintf(row->template, sizeof row->template, "%s", template);
    snprintf(row->path, sizeof row->path, "%s/%zu.html", s->directory, s->count++);
    return SR_OK;
}

static sr_status add_figure(plot_template *t, void *self, sr_failure *why) {
    return sections_add(self, NULL, t->path, why);
}

static sr_status sections_list(sections *s, int runs, sr_failure *why) {
    sr_status status = sections_add(s, report_settings, "", why);
    if (status == SR_OK) status = sections_add(s, report_ends, "", why);
    if (status == SR_OK) status = sections_add(s, report_diagnosis, "", why);
    if (status == SR_OK) status = plot_template_each(add_figure, s, why);
    if (status == SR_OK) status = sections_add(s, report_sites, "", why);
    if (status == SR_OK && runs > 1) status = sections_add(s, report_ratios, "", why);
    return status;
}

/* -- in a process of its own ------------------------------------------------------------------ */

static sr_status write_figure(const section *s, sr_failure *why) {
    plot_template t = {0};
    sr_status status = plot_template_read(s->template, &t, why);
    if (status == SR_OK) status = report_figure(s->r, &t, why);
    plot_template_free(&t);
    return status;
}

static int write_section(void *context) {
    section *s = context;
    sr_failure *why = &s->end->why;
    s->r->page = fopen(s->path, "w");
    if (!s->r->page) return sr_fail(why, SR_IO, "%s: %s", s->path, strerror(errno)), 1;
    sr_status status = s->write ? s->write(s->r, why) : write_figure(s, why);
    const bool bad = ferror(s->r->page) != 0;
    if ((fclose(s->r->page) != 0 || bad) && status == SR_OK)
        status = sr_fail(why, SR_IO, "%s: cannot write: %s", s->path, strerror(errno));
    s->end->drawn = s->r->drawn;
    return status != SR_OK;
}

/* -- all ------------------------------------------------------------------------------------- */

static sr_status sections_share(sections *s, report *r, sr_failure *why) {
    s->shared = s->count * sizeof *s->end;
    void *shared = mmap(NULL, s->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return sr_fail(why, SR_MEMORY, "out of memory");
    s->end = shared;
    for (size_t i = 0; i < s->count; i++) s->row[i].r = r, s->row[i].end = &s->end[i];
    return SR_OK;
}

/* What a section says of itself says more than how its process ended. */
static sr_status sections_run(sections *s, sr_failure *why) {
    sr_failure ended = {0};
    plot_process *p = calloc(s->count, sizeof *p);
    if (!p) return sr_fail(why, SR_MEMORY, "out of memory");
    for (size_t i = 0; i < s->count; i++)
        p[i] = (plot_process){.call = write_section, .context = &s->row[i]};
    const sr_status status = plot_process_run_all(p, (int)s->count, NULL, &ended);
    free(p);
    for (size_t i = 0; i < s->count && status != SR_OK; i++)
        if (s->end[i].why.status != SR_OK) return *why = s->end[i].why, why->status;
    if (status != SR_OK) *why = ended;
    return status;
}

static sr_status sections_join(const sections *s, report *r, sr_failure *why) {
    char block[65536];
    for (size_t i = 0; i < s->count; i++) {
        FILE *in = fopen(s->row[i].path, "r");
        if (!in) return sr_fail(why, SR_IO, "%s: %s", s->row[i].path, strerror(errno));
        for (size_t size; (size = fread(block, 1, sizeof block, in)) > 0;)
            fwrite(block, 1, size, r->page);
        const bool bad = ferror(in) != 0;
        fclose(in);
        if (bad) return sr_fail(why, SR_IO, "%s: cannot read", s->row[i].path);
        r->drawn += s->end[i].drawn;
    }
    return SR_OK;
}

sr_status report_write_sections(report *r, sr_failure *why) {
    sections s = {0};
    sr_status status = plot_scratch_create(s.directory, why);
    if (status == SR_OK) status = sections_list(&s, r->request->runs, why);
    if (status == SR_OK) status = sections_share(&s, r, why);
    if (status == SR_OK) status = sections_run(&s, why);
    if (status == SR_OK) status = sections_join(&s, r, why);
    if (s.end) munmap(s.end, s.shared);
    if (s.directory[0]) plot_scratch_remove(s.directory);
    free(s.row);
    return status;
}
