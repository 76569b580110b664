/* data_find.c -- recognizes data sets; see data_find.h. The function of each layout adds its data
 * sets.
 *
 * A set starts at a training file. Its validation and test files have the same name except for the
 * word of the split; else the first files of the same kind.
 */
#include "data/find/data_find.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/containers/map.h"

static bool ends_with(const char *name, const char *end) {
    const size_t a = strlen(name), b = strlen(end);
    return a > b && strcmp(name + a - b, end) == 0;
}

/* -- findings */

/* NULL when there are too many. */
static data_finding *add_finding(data_found *found, const char *data) {
    found->more = found->more || found->findings == FIND_MOST;
    if (found->more) return NULL;
    data_finding *f = &found->finding[found->findings++];
    *f = (data_finding){.data = data};
    return f;
}

static void add_option(data_finding *f, const char *key, const char *value) {
    if (!f || f->options == FIND_OPTIONS) return; /* unreached: no finding has more than five */
    find_option *o = &f->option[f->options++];
    o->key = key;
    snprintf(o->value, sizeof o->value, "%s", value);
}

static const char *take(folder_file *file) {
    if (!file) return "";
    file->used = true;
    return file->name;
}

/* trainpref, validpref and testpref; "" without a file. */
static void add_splits(data_finding *f, folder_file *train, folder_file *valid, folder_file *test) {
    add_option(f, "trainpref", take(train));
    add_option(f, "validpref", take(valid));
    add_option(f, "testpref", take(test));
}

/* -- images */

static void find_cifar(data_found *found) {
    bool ten = false;
    char name[FOLDER_NAME];
    for (int i = 1; i <= 5; i++) {
        snprintf(name, sizeof name, "data_batch_%d.bin", i);
        folder_file *file = folder_files_find(&found->files, name);
        ten = ten || file;
        take(file);
    }
    if (ten) {
        take(folder_files_find(&found->files, "test_batch.bin"));
        add_finding(found, "cifar10");
    }
    folder_file *train = folder_files_find(&found->files, "train.bin");
    if (!train) return;
    take(train), take(folder_files_find(&found->files, "test.bin"));
    add_finding(found, "cifar100");
}

/* Replaces the first `from` by `to`. False: it is not there. */
static bool replace(char name[FOLDER_NAME], const char *from, const char *to) {
    char rest[FOLDER_NAME];
    char *at = strstr(name, from);
    if (!at) return false;
    snprintf(rest, sizeof rest, "%s", at + strlen(from));
    const size_t room = FOLDER_NAME - (size_t)(at - name);
    return snprintf(at, room, "%s%s", to, rest) < (int)room;
}

/* The file of labels of a file of images. */
static folder_file *labels_of(const folder_files *f, const char *images) {
    static const char *const ends[] = {"idx1-ubyte", "idx2-int"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char name[FOLDER_NAME];
        snprintf(name, sizeof name, "%s", images);
        replace(name, "images", "labels"), replace(name, "idx3-ubyte", ends[i]);
        folder_file *labels = folder_files_find(f, name);
        if (labels) return labels;
    }
    return NULL;
}

/* The test images of the training images. */
static folder_file *test_images_of(const folder_files *f, const char *train) {
    static const char *const words[] = {"t10k", "test"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char name[FOLDER_NAME];
        snprintf(name, sizeof name, "%s", train);
        replace(name, "train", words[i]);
        folder_file *test = folder_files_find(f, name);
        if (test) return test;
    }
    return NULL;
}

/* Names that `--data idx` finds by itself. */
static bool is_default(const char *images) {
    return !strcmp(images, "train-images-idx3-ubyte") ||
           !strcmp(images, "train-images.idx3-ubyte") ||
           !strcmp(images, "qmnist-train-images-idx3-ubyte");
}

static void find_idx(data_found *found) {
    folder_files *f = &found->files;
    for (int i = 0; i < f->count; i++) {
        folder_file *train = &f->file[i];
        if (!ends_with(train->name, "idx3-ubyte") || train->role != ROLE_TRAIN) continue;
        folder_file *labels = labels_of(f, train->name);
        folder_file *test = test_images_of(f, train->name);
        folder_file *test_labels = test ? labels_of(f, test->name) : NULL;
        data_finding *set = add_finding(found, "idx");
        if (!strncmp(train->name, "emnist-", 7)) add_option(set, "idx-transpose", "yes");
        const bool named = !is_default(train->name);
        const struct {
            const char *key;
            folder_file *file;
        } part[] = {{"idx-train-images", train},
                    {"idx-train-labels", labels},
                    {"idx-test-images", test_labels ? test : NULL},
                    {"idx-test-labels", test_labels}};
        for (int k = 0; k < 4; k++) {
            const char *name = take(part[k].file);
            if (named) add_option(set, part[k].key, name);
        }
    }
}

/* -- folders of classes */

static folder_file *folder_of(const folder_files *f, file_role role) {
    for (int i = 0; i < f->count; i++)
        if (f->file[i].folder && f->file[i].role == role && !strcmp(f->file[i].rest, "*"))
            return &f->file[i];
    return NULL;
}

/* Has at least two folders. If it cannot be read, it has none, and its `why` has the reason. */
static bool has_classes(const folder_files *f, folder_file *train) {
    folder_files classes;
    char path[FILE_PATH + FOLDER_NAME];
    int folders = 0;
    if (!train) return false;
    snprintf(path, sizeof path, "%s/%s", f->path, train->name);
    if (folder_files_read(path, NULL, &classes, &train->why) == SR_OK)
        for (int i = 0; i < classes.count; i++) folders += classes.file[i].folder;
    folder_files_free(&classes);
    return folders >= 2;
}

static void find_folders(data_found *found) {
    const folder_files *f = &found->files;
    folder_file *train = folder_of(f, ROLE_TRAIN), *valid = folder_of(f, ROLE_VALID),
                *test = folder_of(f, ROLE_TEST);
    if (!has_classes(f, train)) return;
    add_splits(add_finding(found, "labelled"), train, has_classes(f, valid) ? valid : NULL,
               has_classes(f, test) ? test : NULL);
}

/* -- PREFIX.neg and PREFIX.pos */

static void find_polarity(data_found *found) {
    const folder_files *f = &found->files;
    for (int i = 0; i < f->count; i++) {
        char name[FOLDER_NAME];
        folder_file *negative = &f->file[i];
        snprintf(name, sizeof name, "%s", negative->name);
        if (negative->folder || !ends_with(name, ".neg")) continue;
        strcpy(name + strlen(name) - 3, "pos");
        folder_file *positive = folder_files_find(f, name);
        if (!positive || positive->folder) continue;
        take(negative), take(positive);
        name[strlen(name) - 4] = 0;
        add_option(add_finding(found, "polarity"), "trainpref", name);
    }
}

/* -- sentence pairs */

enum { LANGUAGES_MOST = 16 };

/* PREFIX.LANG or PREFIX.LANG.xml. Returns the language's length, 0 without one; *prefix: the length
 * of PREFIX. */
static int language_of(const char *name, int *prefix) {
    static const char *const others[] = {"txt", "csv", "tsv", "bin", "zip", "neg", "pos", "dev",
                                         "val", "tst", "xml", "tok", "dp",  "gz",  "bz2", "xz",
                                         "tar", "tgz", "npy", "npz", "pkl", "log", "vec", "py"};
    size_t length = strlen(name);
    if (ends_with(name, ".xml")) length -= 4;
    size_t from = length;
    while (from > 0 && name[from - 1] != '.') from--;
    const size_t letters = strspn(name + from, "abcdefghijklmnopqrstuvwxyz");
    const size_t size = length - from;
    if (from < 2 || letters < 2 || letters > 3) return 0;
    if (size != letters && name[from + letters] != '_' && name[from + letters] != '-') return 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (size == strlen(others[i]) && !memcmp(name + from, others[i], size)) return 0;
    *prefix = (int)from - 1;
    return (int)size;
}

/* Texts of one prefix. */
typedef struct parallel_texts {
    char prefix[FOLDER_NAME], rest[FOLDER_NAME];
    file_role role;
    char language[LANGUAGES_MOST][16];
    folder_file *file[LANGUAGES_MOST];
    int languages;
} parallel_texts;

typedef struct parallel_list {
    parallel_texts *text; /* [count] */
    int count;
} parallel_list;

/* Every prefix with its languages, in the order of the files. False when out of memory. */
static bool list_texts(const folder_files *f, parallel_list *l) {
    map prefixes = {0};
    *l = (parallel_list){calloc((size_t)f->count + 1, sizeof *l->text), 0};
    bool done = l->text != NULL;
    for (int i = 0; done && i < f->count; i++) {
        folder_file *file = &f->file[i];
        int length;
        const int size = file->folder ? 0 : language_of(file->name, &length);
        if (!size) continue;
        const int64_t at = map_add(&prefixes, file->name, (size_t)length);
        done = at >= 0;
        if (!done) break;
        parallel_texts *t = &l->text[at];
        if (at == l->count) {
            snprintf(t->prefix, sizeof t->prefix, "%.*s", length, file->name);
            t->role = folder_role(t->prefix, t->rest);
            l->count++;
        }
        if (t->languages == LANGUAGES_MOST || size >= (int)sizeof *t->language) continue;
        snprintf(t->language[t->languages], sizeof *t->language, "%.*s", size,
                 file->name + length + 1);
        t->file[t->languages++] = file;
    }
    map_free(&prefixes);
    return done;
}

static folder_file *text_of(const parallel_texts *t, const char *language) {
    for (int i = 0; i < t->languages; i++)
        if (!strcmp(t->language[i], language)) return t->file[i];
    return NULL;
}

/* de and en if present, else the first two. */
static void choose_languages(const parallel_texts *t, const char *language[SIDES]) {
    const bool usual = text_of(t, "de") && text_of(t, "en");
    language[SIDE_SOURCE] = usual ? "de" : t->language[0];
    language[SIDE_TARGET] = usual ? "en" : t->language[1];
}

static void take_texts(const parallel_texts *t, const char *const language[SIDES]) {
    for (int i = 0; i < SIDES; i++) take(text_of(t, language[i]));
}

/* Texts of a split in both languages, of the training text's name first; NULL: none. */
static const parallel_texts *choose_texts(const parallel_list *l, const parallel_texts *train,
                                          file_role role, const char *const language[SIDES]) {
    const parallel_texts *first = NULL;
    for (int i = 0; i < l->count; i++) {
        const parallel_texts *t = &l->text[i];
        if (t->role != role || !text_of(t, language[0]) || !text_of(t, language[1])) continue;
        if (!strcmp(t->rest, train->rest)) return t;
        if (!first) first = t;
    }
    return first;
}

static void add_parallel(data_found *found, const parallel_list *l, const parallel_texts *train) {
    static const file_role roles[] = {ROLE_VALID, ROLE_TEST};
    static const char *const keys[] = {"validpref", "testpref"};
    const char *language[SIDES];
    data_finding *set = add_finding(found, "parallel");
    if (!set) return;
    choose_languages(train, language);
    take_texts(train, language);
    add_option(set, "trainpref", train->prefix);
    for (int i = 0; i < 2; i++) {
        const parallel_texts *t = choose_texts(l, train, roles[i], language);
        add_option(set, keys[i], t ? t->prefix : "");
        if (t) take_texts(t, language);
    }
    add_option(set, "source", language[SIDE_SOURCE]);
    add_option(set, "target", language[SIDE_TARGET]);
    for (int i = 0; i < train->languages; i++) {
        const size_t used = strlen(set->also);
        if (train->file[i]->used) continue;
        snprintf(set->also + used, sizeof set->also - used, "%s%s", used ? " " : "",
                 train->language[i]);
        take(train->file[i]);
    }
}

/* A text without a word for its split is one for training if there is no other. */
static sr_status find_parallel(data_found *found, sr_failure *why) {
    const int before = found->findings;
    parallel_list l;
    const bool listed = list_texts(&found->files, &l);
    for (int k = 0; listed && k < 2 && found->findings == before; k++)
        for (int i = 0; i < l.count; i++)
            if (l.text[i].languages >= 2 && l.text[i].role == (k ? ROLE_NONE : ROLE_TRAIN))
                add_parallel(found, &l, &l.text[i]);
    free(l.text);
    if (listed) return SR_OK;
    return sr_fail(why, SR_MEMORY, "%s: out of memory for its texts", found->files.path);
}

/* -- texts by their look */

/* The file of a split that belongs to a training file; NULL: none. */
static folder_file *split_of(const folder_files *f, const folder_file *train, file_role role) {
    folder_file *first = NULL;
    for (int i = 0; i < f->count; i++) {
        folder_file *file = &f->file[i];
        if (file->folder || file->used || file->role != role) continue;
        if (!strcmp(file->rest, train->rest)) return file;
        if (!first && file->looks.kind == train->looks.kind) first = file;
    }
    return first;
}

static void add_options_of_look(data_finding *set, const text_looks *l) {
    if (l->kind == LOOKS_TAGGED && l->numbered) add_option(set, "word-column", "2");
    if (l->kind == LOOKS_TAGGED && l->tabs) add_option(set, "delimiter", "tab");
    if (l->kind == LOOKS_LABELLED && l->several) add_option(set, "labels", "first");
}

static void find_splits(data_found *found, text_kind kind, const char *data) {
    folder_files *f = &found->files;
    for (int i = 0; i < f->count; i++) {
        folder_file *train = &f->file[i];
        if (train->folder || train->used || train->role != ROLE_TRAIN || train->looks.kind != kind)
            continue;
        data_finding *set = add_finding(found, data);
        add_splits(set, train, split_of(f, train, ROLE_VALID), split_of(f, train, ROLE_TEST));
        add_options_of_look(set, &train->looks);
    }
}

/* Programs, settings and pages, which are texts too. */
static bool is_no_corpus(const char *name) {
    static const char *const ends[] = {".conf", ".json", ".yaml", ".yml",   ".toml", ".md",
                                       ".rst",  ".log",  ".py",   ".ipynb", ".sh",   ".gp",
                                       ".c",    ".h",    ".cpp",  ".js",    ".css",  ".tex",
                                       ".bib",  ".html", ".svg",  ".xml"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_with(name, ends[i])) return true;
    return false;
}

/* Files whose names name no split. cut: option of the reader that cuts one file into splits; NULL:
 * none. */
static void find_whole(data_found *found, text_kind kind, const char *data, const char *cut) {
    folder_files *f = &found->files;
    for (int i = 0; i < f->count; i++) {
        folder_file *file = &f->file[i];
        if (file->folder || file->used || file->looks.kind != kind) continue;
        if (file->role == ROLE_VALID || file->role == ROLE_TEST) continue;
        if (kind == LOOKS_TEXT && is_no_corpus(file->name)) continue;
        data_finding *set = add_finding(found, cut ? cut : data);
        if (cut)
            add_option(set, "data-file", take(file));
        else
            add_splits(set, file, NULL, NULL);
        add_options_of_look(set, &file->looks);
    }
}

/* The name of a file of Tatoeba is a language. */
static void find_tabbed(data_found *found) {
    folder_files *f = &found->files;
    for (int i = 0; i < f->count; i++) {
        char columns[64];
        folder_file *file = &f->file[i];
        if (file->folder || file->used || file->looks.kind != LOOKS_TABBED) continue;
        const size_t letters = strspn(file->name, "abcdefghijklmnopqrstuvwxyz");
        const bool named =
            letters == 3 && file->name[3] == '.' && strncmp(file->name, "deu", 3) != 0;
        const char *language = named ? file->name : "de";
        const int size = named ? 3 : 2;
        data_finding *set = add_finding(found, "tabbed");
        add_option(set, "data-file", take(file));
        snprintf(columns, sizeof columns, file->looks.export4 ? "id,en,id2,%.*s" : "en,%.*s", size,
                 language);
        add_option(set, "columns", columns);
        snprintf(columns, sizeof columns, "%.*s", size, language);
        add_option(set, "source", columns);
    }
}

static bool is_one_line(const char *name) {
    return !strncmp(name, "enwik", 5) || !strncmp(name, "text8", 5);
}

static void find_bytes(data_found *found) {
    for (int i = 0; i < found->files.count; i++) {
        folder_file *file = &found->files.file[i];
        if (file->folder || file->used || !is_one_line(file->name)) continue;
        add_option(add_finding(found, "bytes"), "data-file", take(file));
    }
}

static void find_texts(data_found *found) {
    static const struct {
        text_kind kind;
        const char *data, *cut;
    } kinds[] = {{LOOKS_LABELLED, "labelled", NULL},
                 {LOOKS_CSV, "labelled-csv", NULL},
                 {LOOKS_TAGGED, "conll", NULL},
                 {LOOKS_TREES, "trees", "trees-cut"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        find_splits(found, kinds[i].kind, kinds[i].data);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        find_whole(found, kinds[i].kind, kinds[i].data, kinds[i].cut);
    find_tabbed(found);
    find_bytes(found);
    find_splits(found, LOOKS_TEXT, "text");
    if (found->findings == 0) find_whole(found, LOOKS_TEXT, "text", NULL);
}

/* -- the folder */

/* The folder of a file and its name in it. */
static void cut_path(const char *path, char folder[FILE_PATH], const char **name) {
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    snprintf(folder, FILE_PATH, "%.*s",
             slash == path ? 1
             : slash       ? (int)(slash - path)
                           : 1,
             slash ? path : ".");
}

sr_status data_find(const char *path, data_found *found, sr_failure *why) {
    struct stat s;
    char folder[FILE_PATH];
    const char *only = NULL;
    *found = (data_found){0};
    if (strlen(path) >= DATA_TEXT)
        return sr_fail(why, SR_USAGE, "%.80s...: a path of %zu bytes, at most %d", path,
                       strlen(path), DATA_TEXT - 1);
    if (stat(path, &s) != 0) return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    snprintf(folder, sizeof folder, "%.*s", (int)length, path);
    if (!S_ISDIR(s.st_mode)) cut_path(path, folder, &only);
    sr_status status = folder_files_read(folder, only, &found->files, why);
    if (status != SR_OK) return status;
    find_cifar(found);
    find_idx(found);
    find_folders(found);
    find_polarity(found);
    status = find_parallel(found, why);
    if (status != SR_OK) return status;
    folder_files_look(&found->files);
    find_texts(found);
    return SR_OK;
}

void data_found_free(data_found *found) {
    folder_files_free(&found->files);
}
