/* test_failing_commands.c -- reading commands of statrec while one allocation, system call or HDF5
 * call fails: they end with a reason, or print their usual output. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include "testing/failing_programs.h"
#include "testing/full_run.h"

int statrec_main(int argc, char **argv);

static const char *const of_runs[] = {
    "statrec info run.h5",
    "statrec info --format json run.h5",
    "statrec info --options run.h5",
    "statrec check run.h5 other.h5",
    "statrec export --force -o run.npz run.h5",
};
static const char *const of_texts[] = {
    "statrec list norms --format json",
    "statrec list stats",
    "statrec list sites --model resnet20 --norm bn",
    "statrec data pairs",
    "statrec score bleu --ref pairs/train.en pairs/train.en",
    "statrec score conll tags",
    "statrec dictionary --size 9 pairs/train.de",
    "statrec bpe learn -s 5 pairs/train.de",
};

static void write_texts(void) {
    static const char *const languages[] = {"de", "en"};
    assert_int_equal(mkdir(program_file("pairs"), 0777), 0);
    for (int l = 0; l < 2; l++) {
        char name[64];
        snprintf(name, sizeof name, "pairs/train.%s", languages[l]);
        program_write(name, l ? "a small dog runs .\na dog runs home .\n"
                              : "ein kleiner Hund rennt .\nein Hund rennt heim .\n");
        snprintf(name, sizeof name, "pairs/val.%s", languages[l]);
        program_write(name, l ? "a dog .\n" : "ein Hund .\n");
    }
    program_write("tags", "U.N. I-ORG I-ORG\nofficial O O\nEkeus I-PER I-LOC\n\nPhil I-PER O\n");
}

static int write_files(void **state) {
    static const char config[] = "model = transformer\ndata = synth-pairs\nnorm = bn\n";
    (void)state;
    write_full_run(&(full_run){.path = program_file("run.h5"), .seed = 1, .config = config});
    write_full_run(
        &(full_run){.path = program_file("other.h5"), .seed = 1, .norm = "rbn", .config = config});
    write_texts();
    return 0;
}

/* Each call site once: code shared by the commands is not tested for each of them. */
static void fail_each(const char *const *lines, size_t count, failing_kind kind, int depth) {
    failing_once = true, failing_depth = depth;
    for (size_t i = 0; i < count; i++) fail_program(statrec_main, lines[i], kind);
}

#define OF(lines) lines, sizeof lines / sizeof *lines

static void test_run_allocations(void **state) {
    (void)state;
    fail_each(OF(of_runs), FAILING_ALLOCATIONS, 2);
}

static void test_run_hdf5(void **state) {
    (void)state;
    fail_each(OF(of_runs), FAILING_HDF5, 2);
}

/* The functions of a command that read columns are some calls away. */
static void test_run_reads(void **state) {
    (void)state;
    failing_only = "H5Dread";
    fail_each(OF(of_runs), FAILING_HDF5, 7);
    failing_only = NULL;
}

static void test_run_system(void **state) {
    (void)state;
    fail_each(OF(of_runs), FAILING_SYSTEM, 2);
}

static void test_text_allocations(void **state) {
    (void)state;
    fail_each(OF(of_texts), FAILING_ALLOCATIONS, 3);
}

static void test_text_system(void **state) {
    (void)state;
    program_names = "";
    fail_each(OF(of_texts), FAILING_SYSTEM, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_allocations),  cmocka_unit_test(test_run_hdf5),
        cmocka_unit_test(test_run_reads),        cmocka_unit_test(test_run_system),
        cmocka_unit_test(test_text_allocations), cmocka_unit_test(test_text_system),
    };
    return cmocka_run_group_tests(tests, write_files, NULL);
}
