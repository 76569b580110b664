/* Parts of a report's page: text, tables of analyses, the settings of a run. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/globs.h"
#include "base/program/tool.h"
#include "base/utf8.h"
#include "plot/plot_tsv.h"
#include "plot/report/plot_html.h"

void plot_html_text(FILE *out, const char *text) {
    for (int bytes; *text; text += bytes ? bytes : 1) {
        const unsigned char c = (unsigned char)*text;
        bytes = utf8_shown(text);
        if (c == '<')
            fputs("&lt;", out);
        else if (c == '>')
            fputs("&gt;", out);
        else if (c == '&')
            fputs("&amp;", out);
        else if (c == '"')
            fputs("&quot;", out);
        else
            fwrite(bytes ? text : " ", 1, bytes ? (size_t)bytes : 1, out);
    }
}

bool plot_html_has_long_word(const char *text) {
    enum { LONG_WORD = 20 };
    for (size_t length; *text; text += length + (text[length] != 0))
        if ((length = strcspn(text, " -,/")) > LONG_WORD) return true;
    return false;
}

void plot_html_cell(FILE *out, const char *tag, const char *class, const char *text) {
    const bool breaks = plot_html_has_long_word(text);
    fprintf(out, "<%s", tag);
    if (class[0] || breaks)
        fprintf(out, " class=\"%s%s%s\"", class, class[0] && breaks ? " " : "",
                breaks ? "long" : "");
    fputc('>', out);
    plot_html_text(out, text);
    fprintf(out, "</%.2s>", tag);
}

void plot_html_path(FILE *out, const char *path) {
    char *word = tool_argument(path);
    if (word) plot_html_text(out, word);
    free(word);
}

/* -- numbers --------------------------------------------------------------------------------- */

/* With as many digits as one compares by eye; the file beside the page has all. */
void plot_html_number(FILE *page, const char *cell) {
    char *end;
    const double value = strtod(cell, &end);
    if (end != cell && !*end && strpbrk(cell, ".e"))
        fprintf(page, "%.4g", value);
    else
        plot_html_text(page, cell);
}

/* Three digits, as diagnose prints them; a value without an interval is an event. */
void plot_html_estimate(FILE *page, const char *value, const char *low, const char *high) {
    if (strcmp(low, "nan") == 0)
        plot_html_number(page, value);
    else
        fprintf(page, "%.3g [%.3g, %.3g]", strtod(value, NULL), strtod(low, NULL),
                strtod(high, NULL));
}

void plot_html_finding(FILE *page, const char *statistic, const char *value, const char *low,
                       const char *high, const char *limit, const char *site) {
    fputs(": ", page);
    plot_html_text(page, statistic);
    fputc(' ', page);
    plot_html_estimate(page, value, low, high);
    if (site[0] && strcmp(site, "-") != 0) {
        fputs(" at ", page);
        plot_html_text(page, site);
    }
    if (strcmp(limit, "nan") == 0) return;
    fputs(" (limit ", page);
    plot_html_number(page, limit);
    fputc(')', page);
}

/* -- tables ---------------------------------------------------------------------------------- */

static void write_cell(FILE *page, const char *cell) {
    char *end;
    strtod(cell, &end);
    if (end == cell || *end) {
        plot_html_cell(page, "td", "", cell);
        return;
    }
    fputs("<td class=\"n\">", page);
    plot_html_number(page, cell);
    fputs("</td>", page);
}

static bool among(const char *words, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = words; length && (at = strstr(at, word)); at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length])) return true;
    return false;
}

/* May break after every _. */
static void write_column(FILE *page, const char *name) {
    char part[256];
    fputs("<th>", page);
    for (size_t length; *name; name += length) {
        length = strcspn(name, "_");
        length += name[length] == '_';
        if (length >= sizeof part) length = sizeof part - 1;
        snprintf(part, sizeof part, "%.*s", (int)length, name);
        plot_html_text(page, part);
        if (name[length]) fputs("<wbr/>", page);
    }
    fputs("</th>", page);
}

/* The columns of a table that are shown. The part that is written is the first one and those from
 * `first` to before `end`. */
typedef struct shown {
    int column[PLOT_COLUMNS], count, first, end;
} shown;

static bool is_shown(const shown *s, int i) {
    return i == 0 || (i >= s->first && i < s->end);
}

static void write_header(FILE *page, const plot_tsv *t, const shown *s) {
    fputs("<table><thead><tr>", page);
    for (int i = 0; i < s->count; i++)
        if (is_shown(s, i)) write_column(page, t->column[s->column[i]]);
    fputs("</tr></thead>\n<tbody>\n", page);
}

void plot_html_link(FILE *page, const char *name) {
    fputs("<p><a href=\"", page);
    plot_html_text(page, name);
    fputs("\">", page);
    plot_html_text(page, name);
    fputs("</a>: the whole table with every digit</p>\n", page);
}

sr_status plot_html_definitions(FILE *page, const char *path, sr_failure *why) {
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    FILE *in = fopen(path, "r");
    if (!in) return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    fputs("<details><summary>Definitions</summary>\n<dl>\n", page);
    while ((length = getline(&line, &size, in)) > 1 && line[0] == '#') {
        line[length - 1] = 0;
        plot_tsv_unescape(line);
        char *text = line + strspn(line, "# "), *colon = strstr(text, ": ");
        if (!colon || strncmp(text, "program", 7) == 0 || strncmp(text, "run:", 4) == 0) continue;
        *colon = 0;
        if (strncmp(text, "column ", 7) == 0) text += 7;
        fputs("<dt>", page);
        plot_html_text(page, text);
        fputs("</dt><dd>", page);
        plot_html_text(page, colon + 2);
        fputs("</dd>\n", page);
    }
    fputs("</dl></details>\n", page);
    const bool bad = ferror(in) != 0;
    free(line);
    fclose(in);
    return bad ? sr_fail(why, SR_IO, "%s: cannot read", path) : SR_OK;
}

static void choose_columns(const plot_tsv *t, const char *omit, shown *s) {
    s->count = 0;
    for (int i = 0; i < t->columns; i++)
        if (!among(omit, t->column[i])) s->column[s->count++] = i;
}

/* A part of the columns; *more: others are left. */
static sr_status write_part(FILE *page, const char *path, const char *omit, shown *s, bool *more,
                            sr_failure *why) {
    plot_tsv t;
    bool row;
    sr_status status = plot_tsv_open(&t, path, why);
    if (status != SR_OK) return status;
    choose_columns(&t, omit, s);
    write_header(page, &t, s);
    while ((status = plot_tsv_next(&t, &row, why)) == SR_OK && row) {
        fputs("<tr>", page);
        for (int i = 0; i < s->count; i++)
            if (is_shown(s, i)) write_cell(page, t.cell[s->column[i]]);
        fputs("</tr>\n", page);
    }
    fputs("</tbody></table>\n", page);
    *more = s->end < s->count;
    plot_tsv_close(&t);
    return status;
}

sr_status plot_html_table(FILE *page, const char *path, const char *link, const char *omit,
                          sr_failure *why) {
    enum { FITTING = 12 }; /* columns beside each other */
    sr_status status = SR_OK;
    bool more = true;
    for (shown s = {.first = 1}; more && status == SR_OK; s.first = s.end) {
        s.end = s.first + FITTING - 1;
        status = write_part(page, path, omit, &s, &more, why);
    }
    if (status != SR_OK) return status;
    plot_html_link(page, link);
    return plot_html_definitions(page, path, why);
}

/* -- settings -------------------------------------------------------------------------------- */

static void write_setting(FILE *page, const char *name, const char *value) {
    if (!value || !value[0]) return;
    fprintf(page, "<tr><th scope=\"row\">%s</th>", name);
    plot_html_cell(page, "td", "", value);
    fputs("</tr>\n", page);
}

static void write_sites(FILE *page, const sr_runfile *run) {
    const sr_run_site *site;
    fputs("<tr><th scope=\"row\">sites</th><td class=\"long\">", page);
    bool any = false;
    for (int64_t i = 0; (site = sr_run_get_site(run, i)); i++) {
        if (globs_is_replica(site->name)) continue;
        fputs(any ? ", " : "", page);
        any = true;
        plot_html_text(page, site->name);
        fputs(" (", page);
        plot_html_text(page, site->norm);
        fprintf(page, " %lld%s)", (long long)site->width, site->observed ? ", observed" : "");
    }
    fputs("</td></tr>\n", page);
}

static void write_config(FILE *page, const char *config) {
    if (!config[0]) return;
    fputs("<details><summary>Configuration</summary><pre>", page);
    for (const char *at = config; *at;) {
        char line[1024];
        const size_t length = strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(length < 1000 ? length : 1000), at);
        plot_html_text(page, line);
        fputc('\n', page);
        at += length + (at[length] == '\n');
    }
    fputs("</pre></details>\n", page);
}

void plot_html_settings(FILE *page, const plot_run *run) {
    char text[128];
    const sr_run_info *info = sr_run_get_info(run->file);
    fputs("<table class=\"settings\">\n", page);
    write_setting(page, "file", run->path);
    write_setting(page, "status", info->status);
    write_setting(page, "reason", info->reason);
    write_setting(page, "model", info->model);
    write_setting(page, "data", info->data);
    write_setting(page, "task", info->task);
    snprintf(text, sizeof text, "%llu", (unsigned long long)info->seed);
    write_setting(page, "seed", text);
    snprintf(text, sizeof text, "%lld, %lld with vectors, %lld evaluations", (long long)info->steps,
             (long long)info->vectors, (long long)info->evals);
    write_setting(page, "steps", text);
    snprintf(text, sizeof text, "%.60s %.60s", info->program, info->version);
    write_setting(page, "program", text);
    write_setting(page, "command", info->command);
    write_setting(page, "git", info->git);
    write_setting(page, "created", info->created);
    write_setting(page, "finished", info->finished);
    write_sites(page, run->file);
    fputs("</table>\n", page);
    write_config(page, run->config);
}
