/* plot_report_differences.c -- the differences between the runs: model, norm, data, seed and the
 * options of their configurations. A few runs have a column each; with many, each value lists its
 * runs. */
#include <stdio.h>
#include <string.h>

#include "base/options/options.h"
#include "plot/report/plot_html.h"
#include "plot/report/plot_report.h"

enum { COLUMNS = 6, VALUE = 512, ROWS = 400 };
/* An untrusted file may have any configuration: no more lines of it are compared, and none of a
 * longer one. */
enum { LINES = 500, LONGEST = 1 << 16 };

/* Parts that every run has, from any program. */
static const char *const parts[RUN_PARTS] = {"model", "norm", "data", "seed"};

/* An option as its first run writes it. */
typedef struct setting {
    const char *key;  /* [length] */
    int length, part; /* part: of the run's texts, -1: an option of the configuration */
} setting;

typedef struct settings {
    setting row[ROWS];
    int count;
} settings;

static const char *config_of(const plot_run *run) {
    return strnlen(run->config, LONGEST) < LONGEST ? run->config : "";
}

static void copy_key(const setting *s, char key[128]) {
    snprintf(key, 128, "%.*s", s->length, s->key);
}

/* False where the run has no such option. A norm with its parameters is an option. */
static bool value_of(const plot_run *run, const setting *s, char value[VALUE]) {
    static const char seed[] = "seed ";
    char key[128];
    option_line l;
    if ((s->part < 0 || s->part == RUN_NORM) &&
        options_find_line(config_of(run), s->key, s->length, &l)) {
        copy_key(s, key);
        options_line_value(config_of(run), key, value, VALUE);
        return true;
    }
    const char *text = s->part >= 0 ? run->text[s->part] : "";
    snprintf(value, VALUE, "%s", text + (s->part == RUN_SEED ? sizeof seed - 1 : 0));
    return s->part >= 0;
}

/* The value of an option that is not used. */
static bool is_off(const char *value) {
    static const char *const words[] = {"", "0", "-1", "no", "none", "off", "nan"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(value, words[i]) == 0) return true;
    return false;
}

/* A missing option is a difference, unless it had no effect there, or if all other runs have it:
 * the run may be older than the option. */
static bool differs(const report *r, const setting *s) {
    char first[VALUE], other[VALUE];
    bool any = false, lacking = false;
    for (int i = 0; i < report_own(r); i++) {
        const plot_run *run = &r->request->run[i];
        const bool has = value_of(run, s, other);
        lacking = lacking || (!has && config_of(run)[0] && !options_left_out(config_of(run)));
        if (!has) continue;
        if (any && strcmp(first, other) != 0) return true;
        if (!any) memcpy(first, other, sizeof first);
        any = true;
    }
    return any && lacking && !is_off(first);
}

static bool is_listed(const settings *s, const option_line *l) {
    for (int i = 0; i < s->count; i++)
        if (s->row[i].length == l->key_length &&
            strncmp(s->row[i].key, l->key, (size_t)l->key_length) == 0)
            return true;
    return false;
}

static void add(const report *r, settings *s, setting one) {
    if (s->count < ROWS && differs(r, &one)) s->row[s->count++] = one;
}

/* all: also options that affect recording or printing, not training. */
static void collect(const report *r, bool all, settings *s) {
    option_line l;
    s->count = 0;
    for (int i = 0; i < RUN_PARTS; i++) add(r, s, (setting){parts[i], (int)strlen(parts[i]), i});
    for (int i = 0, lines = 0; i < report_own(r); i++, lines = 0)
        for (const char *at = config_of(&r->request->run[i]);
             options_next_line(&at, &l) && lines++ < LINES;)
            if (!is_listed(s, &l) && (all || !plot_option_tells_nothing(l.key)))
                add(r, s, (setting){l.key, l.key_length, -1});
}

static const char *shown_value(const report *r, int run, const setting *s, char value[VALUE]) {
    const bool has = value_of(&r->request->run[run], s, value);
    return !has ? "-" : value[0] ? value : "default";
}

static void write_columns(report *r, const setting *s) {
    char value[VALUE];
    for (int i = 0; i < report_own(r); i++)
        plot_html_cell(r->page, "td", "", shown_value(r, i, s, value));
}

/* "256: a.h5, b.h5" for each value. */
static void write_values(report *r, const setting *s) {
    char value[VALUE], other[VALUE];
    const int runs = report_own(r);
    fputs("<td class=\"long\">", r->page);
    for (int i = 0, values = 0; i < runs; i++) {
        const char *shown = shown_value(r, i, s, value);
        bool before = false;
        for (int k = 0; k < i && !before; k++)
            before = strcmp(shown, shown_value(r, k, s, other)) == 0;
        if (before) continue;
        fputs(values++ ? "<br/><b>" : "<b>", r->page);
        plot_html_text(r->page, shown);
        fputs("</b>: ", r->page);
        for (int k = i, named = 0; k < runs; k++) {
            if (strcmp(shown, shown_value(r, k, s, other)) != 0) continue;
            fputs(named++ ? ", " : "", r->page);
            plot_html_text(r->page, report_run_name(r, k));
        }
    }
    fputs("</td>", r->page);
}

void report_differences(report *r, bool all) {
    settings s;
    char key[128];
    const bool columns = report_own(r) <= COLUMNS;
    collect(r, all, &s);
    if (!s.count) {
        fputs("<p>No difference in model, data, normalization, seed and options.</p>\n", r->page);
        return;
    }
    fputs("<table class=\"differences\"><thead><tr><th>setting</th>", r->page);
    for (int i = 0; columns && i < report_own(r); i++) {
        plot_html_cell(r->page, "th", "", report_run_name(r, i));
    }
    fputs(columns ? "</tr></thead>\n<tbody>\n" : "<th>value: runs</th></tr></thead>\n<tbody>\n",
          r->page);
    for (int i = 0; i < s.count; i++) {
        copy_key(&s.row[i], key);
        fputs("<tr>", r->page);
        plot_html_cell(r->page, "th scope=\"row\"", "", key);
        if (columns)
            write_columns(r, &s.row[i]);
        else
            write_values(r, &s.row[i]);
        fputs("</tr>\n", r->page);
    }
    fputs("</tbody></table>\n", r->page);
    report_others(r);
}
