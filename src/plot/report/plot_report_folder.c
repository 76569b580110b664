/* The folder of a report. It is made as .NAME.part-XXXXXX beside NAME and takes its place by one
 * rename. A report that is interrupted, fails or is killed leaves the old one complete. The
 * exchange leaves the old report beside it. The files that its page names are removed; other
 * people's files go back into the new folder.
 *
 * A folder that cannot be exchanged is filled file by file, the page last. Such folders are a mount
 * point, the working folder, or in a parent without write permission.
 *
 * Calls with one folder take turns: a call that reads or changes the place holds a lock of the
 * folder above.
 *
 * A call that was killed leaves .NAME.part-XXXXXX. Its mark distinguishes an incomplete report,
 * which is removed, from an old one, which may hold other people's files.
 */
#define _GNU_SOURCE /* renameat2, flock */
#include "plot/report/plot_report_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PAGE   "index.html"
#define MARK   ".building"
#define INSIDE ".part-" /* in the folder's name if it is made inside its place */

enum { LONG = 2 * PLOT_PATH };

/* -- turns ----------------------------------------------------------------------------------- */

/* The lock of `parent`, to be closed. -1 without a lock: the file system has no locks, `parent`
 * cannot be opened, or another process holds it for more than five seconds. */
static int take_turn(const char *parent) {
    enum { TRIES = 250 };
    const struct timespec pause = {.tv_nsec = 20000000};
    const int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; fd >= 0 && i < TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
        if (errno != EWOULDBLOCK) break;
        nanosleep(&pause, NULL);
    }
    if (fd >= 0) close(fd);
    return -1;
}

static void end_turn(int fd) {
    if (fd >= 0) close(fd);
}

static void join(char path[LONG], const char *folder, const char *name) {
    snprintf(path, LONG, "%s/%s", folder, name);
}

/* -- which files are a report's -------------------------------------------------------------- */

/* A page that a report wrote, malloc'd; NULL without one. */
static char *read_page(const char *folder) {
    char path[LONG], *text = NULL;
    struct stat st;
    size_t size = 0;
    join(path, folder, PAGE);
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    FILE *in = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? fdopen(fd, "r") : NULL;
    if (!in && fd >= 0) close(fd);
    if (!in) return NULL;
    const bool any = getdelim(&text, &size, 0, in) > 0;
    fclose(in);
    if (any && strstr(text, REPORT_TITLE)) return text;
    free(text);
    return NULL;
}

/* The page itself, kept tables, and the figures and tables that it names. */
static bool is_own(const char *page, const char *name) {
    char quoted[LONG];
    const char *dot = strrchr(name, '.');
    if (!page) return false;
    if (strcmp(name, PAGE) == 0) return true;
    if (strncmp(name, PLOT_TABLE_PREFIX, strlen(PLOT_TABLE_PREFIX)) == 0) return true;
    if (!dot || (strcmp(dot, ".svg") != 0 && strcmp(dot, ".tsv") != 0 && strcmp(dot, ".html") != 0))
        return false;
    snprintf(quoted, sizeof quoted, "=\"%s\"", name);
    return strstr(page, quoted) != NULL;
}

/* A page that no report wrote is the user's work; an empty page is not. */
static sr_status check_page(const report_folder *f, sr_failure *why) {
    char path[LONG];
    struct stat st;
    join(path, f->target, PAGE);
    if (f->force || lstat(path, &st) != 0 || (S_ISREG(st.st_mode) && st.st_size == 0)) return SR_OK;
    char *page = read_page(f->target);
    free(page);
    if (page) return SR_OK;
    sr_fail(why, SR_USAGE, "%s exists, and is no statrec report", path);
    sr_hint(why, "choose another directory, or --force to replace it");
    return SR_USAGE;
}

/* -- leavings -------------------------------------------------------------------------------- */

typedef void entry_fn(const char *name, void *context);

/* 0, or errno: some entries were not visited. */
static int each_entry(const char *folder, entry_fn *visit, void *context) {
    struct dirent *entry;
    DIR *in = opendir(folder);
    if (!in) return errno;
    while (errno = 0, (entry = readdir(in)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            visit(entry->d_name, context);
    const int reason = errno;
    closedir(in);
    return reason;
}

typedef struct retired {
    const char *from, *into, *page;
    bool force;
} retired;

/* The user's file keeps its name. If the name is taken, the file stays in place, or is removed by
 * force. */
static void retire_entry(const char *name, void *context) {
    const retired *r = context;
    char old[LONG], place[LONG];
    if (strcmp(name, PAGE) == 0) return;
    join(old, r->from, name);
    join(place, r->into, name);
    if (is_own(r->page, name) ||
        (renameat2(AT_FDCWD, old, AT_FDCWD, place, RENAME_NOREPLACE) != 0 && errno == EEXIST &&
         r->force))
        unlink(old);
}

/* Removes the old report `from`, and moves other files back to `into`. The page goes last: if this
 * call is killed, the page shows the next call which files belong to a report. */
static void retire(const char *from, const char *into, bool force) {
    char path[LONG], *page = read_page(from);
    retired r = {from, into, page, force};
    each_entry(from, retire_entry, &r);
    join(path, from, PAGE);
    unlink(path);
    free(page);
    rmdir(from);
}

/* A call that was killed between two renames (exchange_by_two) left whole reports and no folder in
 * their place. */
static void sweep_one(const char *path, void *context) {
    report_folder *f = context;
    char mark[LONG];
    join(mark, path, MARK);
    if (access(mark, F_OK) == 0)
        plot_folder_remove(path);
    else if (!f->exists)
        f->exists = rename(path, f->target) == 0;
    else
        retire(path, f->target, false);
}

/* -- making it ------------------------------------------------------------------------------- */

/* "/home/me/report" is "/home/me" and "report". */
static void split(const char *path, char folder[PLOT_PATH], char prefix[PLOT_PATH]) {
    const char *slash = strrchr(path, '/');
    const int length = slash == path ? 1 : (int)(slash - path);
    snprintf(folder, PLOT_PATH, "%.*s", length, path);
    snprintf(prefix, PLOT_PATH, ".%.900s.part-", slash + 1);
}

static sr_status find_target(report_folder *f, const char *output, sr_failure *why) {
    char parent[PLOT_PATH], *real;
    struct stat st;
    if (snprintf(parent, sizeof parent, "%s", output) >= PLOT_PATH / 2)
        return sr_fail(why, SR_USAGE, "%.200s...: the name is too long", output);
    for (size_t n = strlen(parent); n > 1 && parent[n - 1] == '/';) parent[--n] = 0;
    f->exists = stat(output, &st) == 0;
    if (f->exists && !S_ISDIR(st.st_mode))
        return sr_fail(why, SR_IO, "-o names a directory; %s is a file", output);
    char *slash = strrchr(parent, '/');
    const char *name = slash ? slash + 1 : output;
    if (!f->exists && slash) *slash = 0;
    real = realpath(f->exists ? output : !slash ? "." : parent[0] ? parent : "/", NULL);
    if (!real) return sr_fail(why, SR_IO, "%s: %s", output, strerror(errno));
    const int length = f->exists ? snprintf(f->target, PLOT_PATH, "%s", real)
                                 : snprintf(f->target, PLOT_PATH, "%s/%.*s", real[1] ? real : "",
                                            (int)strcspn(name, "/"), name);
    free(real);
    return length < PLOT_PATH - 64 ? SR_OK
                                   : sr_fail(why, SR_USAGE, "%s: the name is too long", output);
}

/* Needs one file system, a folder that is no working directory, and write permission. */
static bool can_exchange(const report_folder *f, const char *parent) {
    struct stat own, above;
    char *here = getcwd(NULL, 0);
    const size_t length = strlen(f->target);
    const bool within =
        here && strncmp(here, f->target, length) == 0 && (here[length] == '/' || !here[length]);
    free(here);
    return access(parent, W_OK) == 0 && !within && stat(f->target, &own) == 0 &&
           stat(parent, &above) == 0 && own.st_dev == above.st_dev && own.st_ino != above.st_ino;
}

/* With the rights of the folder that it is to replace. */
static sr_status mark_build(const report_folder *f, sr_failure *why) {
    char mark[LONG];
    struct stat st;
    const mode_t mask = umask(0);
    umask(mask);
    const mode_t mode = f->exists && stat(f->target, &st) == 0 ? st.st_mode & 07777 : 0777 & ~mask;
    join(mark, f->build.path, MARK);
    const int fd = open(mark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const int reason = fd < 0 || chmod(f->build.path, mode | S_IRWXU) != 0 ? errno : 0;
    if (fd >= 0) close(fd);
    return reason ? sr_fail(why, SR_IO, "%s: %s", mark, strerror(reason)) : SR_OK;
}

static sr_status open_in_turn(report_folder *f, const char *parent, const char *prefix,
                              sr_failure *why) {
    plot_scratch_each_left(parent, prefix, sweep_one, f);
    if (f->exists) plot_scratch_each_left(f->target, INSIDE, sweep_one, f);
    sr_status status = check_page(f, why);
    if (status != SR_OK) return status;
    f->whole = !f->exists || can_exchange(f, parent);
    status = f->whole ? plot_scratch_make(&f->build, parent, prefix, why)
                      : plot_scratch_make(&f->build, f->target, INSIDE, why);
    return status == SR_OK ? mark_build(f, why) : status;
}

sr_status report_folder_open(report_folder *f, const char *output, bool force, sr_failure *why) {
    char parent[PLOT_PATH], prefix[PLOT_PATH];
    *f = (report_folder){.force = force};
    sr_status status = find_target(f, output, why);
    if (status != SR_OK) return status;
    split(f->target, parent, prefix);
    const int turn = take_turn(parent);
    status = open_in_turn(f, parent, prefix, why);
    end_turn(turn);
    return status;
}

void report_folder_close(report_folder *f) {
    plot_scratch_remove(&f->build);
}

/* -- its place ------------------------------------------------------------------------------- */

typedef struct conflict {
    const report_folder *f;
    const char *page; /* the old one */
    char name[PLOT_PATH];
} conflict;

static void find_conflict(const char *name, void *context) {
    conflict *c = context;
    char path[LONG];
    struct stat st;
    join(path, c->f->target, name);
    if (c->name[0] || strcmp(name, PAGE) == 0 || strcmp(name, MARK) == 0) return;
    if (lstat(path, &st) == 0 && !is_own(c->page, name))
        snprintf(c->name, sizeof c->name, "%.255s", name);
}

/* A file that the report would replace, and that no report wrote. */
static sr_status check_files(const report_folder *f, sr_failure *why) {
    char *page = f->force || !f->exists ? NULL : read_page(f->target);
    conflict c = {f, page, ""};
    const int reason = f->force || !f->exists ? 0 : each_entry(f->build.path, find_conflict, &c);
    free(page);
    if (reason) return sr_fail(why, SR_IO, "%s: %s", f->build.path, strerror(reason));
    if (!c.name[0]) return SR_OK;
    sr_fail(why, SR_USAGE, "%s/%s exists, and no report wrote it", f->target, c.name);
    sr_hint(why, "choose another directory, or --force to replace it");
    return SR_USAGE;
}

typedef struct moved {
    const report_folder *f;
    const char *page, *now; /* the old page and the new one */
    int reason;             /* errno of the first that failed */
} moved;

static void move_entry(const char *name, void *context) {
    moved *m = context;
    char from[LONG], to[LONG];
    if (strcmp(name, PAGE) == 0 || strcmp(name, MARK) == 0) return;
    join(from, m->f->build.path, name);
    join(to, m->f->target, name);
    if (rename(from, to) != 0 && !m->reason) m->reason = errno;
}

/* Removes files that only the old page names. */
static void remove_stale(const char *name, void *context) {
    const moved *m = context;
    char path[LONG];
    join(path, m->f->target, name);
    if (is_own(m->page, name) && !is_own(m->now, name)) unlink(path);
}

/* Removes files that only the unpublished page names: the next call would take them for the
 * user's. */
static void remove_new(const char *name, void *context) {
    const moved *m = context;
    char path[LONG];
    join(path, m->f->target, name);
    if (strcmp(name, PAGE) != 0 && is_own(m->now, name) && !is_own(m->page, name)) unlink(path);
}

/* File by file, the page last. */
static int fill(const report_folder *f) {
    char from[LONG], to[LONG], *page = read_page(f->target), *now = read_page(f->build.path);
    moved m = {f, page, now, now ? 0 : EIO};
    if (now) {
        const int unread = each_entry(f->build.path, move_entry, &m);
        if (!m.reason) m.reason = unread;
    }
    join(from, f->build.path, PAGE);
    join(to, f->target, PAGE);
    if (!m.reason && rename(from, to) != 0) m.reason = errno;
    if (!m.reason)
        each_entry(f->target, remove_stale, &m);
    else if (!f->force)
        each_entry(f->target, remove_new, &m);
    free(page);
    free(now);
    return m.reason;
}

/* For file systems that cannot exchange. A call that is killed between the renames leaves both
 * folders, and the next one puts one back. The old one is at build.path then. */
static int exchange_by_two(report_folder *f) {
    char parent[PLOT_PATH], prefix[PLOT_PATH];
    plot_scratch old = {.path = ""};
    split(f->target, parent, prefix);
    if (plot_scratch_make(&old, parent, prefix, NULL) != SR_OK) return errno;
    int reason = rename(f->target, old.path) != 0 ? errno : 0;
    if (!reason && rename(f->build.path, f->target) != 0) {
        reason = errno;
        rename(old.path, f->target);
    }
    if (reason)
        rmdir(old.path);
    else
        snprintf(f->build.path, sizeof f->build.path, "%s", old.path);
    plot_scratch_forget(&old);
    return reason;
}

static int exchange(report_folder *f) {
    const char *build = f->build.path, *target = f->target;
    if (!f->exists && rename(build, target) == 0) return 0;
    if (!f->exists && errno != EEXIST && errno != ENOTEMPTY) return errno;
    if (renameat2(AT_FDCWD, build, AT_FDCWD, target, RENAME_EXCHANGE) != 0) {
        const bool cannot = errno == EINVAL || errno == ENOSYS;
        const int reason = cannot ? exchange_by_two(f) : errno;
        if (reason) return reason;
    }
    retire(f->build.path, target, f->force);
    return 0;
}

static sr_status publish_in_turn(report_folder *f, sr_failure *why) {
    char mark[LONG];
    struct stat st;
    f->exists = f->exists || stat(f->target, &st) == 0;
    sr_status status = check_page(f, why);
    if (status == SR_OK) status = check_files(f, why);
    if (status != SR_OK) return status;
    join(mark, f->build.path, MARK);
    /* a folder with the mark is removed with all that is in it */
    if (f->whole && unlink(mark) != 0) return sr_fail(why, SR_IO, "%s: %s", mark, strerror(errno));
    const int reason = f->whole ? exchange(f) : fill(f);
    if (reason) return sr_fail(why, SR_IO, "%s: %s", f->target, strerror(reason));
    /* a folder now at that path is not ours */
    if (f->whole) plot_scratch_forget(&f->build);
    return SR_OK;
}

sr_status report_folder_publish(report_folder *f, sr_failure *why) {
    char parent[PLOT_PATH], prefix[PLOT_PATH];
    split(f->target, parent, prefix);
    const int turn = take_turn(parent);
    const sr_status status = publish_in_turn(f, why);
    end_turn(turn);
    return status;
}
