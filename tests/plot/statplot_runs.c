#include "statplot_runs.h"

#include <string.h>
#include <unistd.h>

#include "testing/check.h"

int statplot_runs(void **state) {
    (void)state;
    const noisy_run vision = {
        program_file("cv.h5"), "resnet20", "bn", "cifar10", "stem", 1500, 16, 0.002, 0};
    const noisy_run text = {program_file("nlp.h5"),
                            "transformer",
                            "bn",
                            "iwslt14",
                            "encoder.0.norm1",
                            1000,
                            128,
                            0.2,
                            30};
    const noisy_run hostile = {program_file("ho`touch tick`'s$(touch dollar).h5"),
                               "`touch tick`\"; system('touch quote') #'''\n",
                               "b`n",
                               "{/Symbol @}_^\\$(touch dollar)\"`touch tick`",
                               "s'i`touch tick`te",
                               300,
                               4,
                               0.1,
                               5};
    write_noisy_run(&vision);
    write_noisy_run(&text);
    write_noisy_run(&hostile);
    write_ln_run(program_file("ln.h5"));
    write_small_run(program_file("one.h5"), 1, true);
    write_small_run(program_file("two.h5"), 2, true);
    write_small_run(program_file("six.h5"), 6, true);
    return 0;
}

bool exists(const char *name) {
    return access(program_file(name), F_OK) == 0;
}

bool only_warnings(const char *err) {
    static const char begin[] = "statplot: warning: ", samples[] = "statplot: no run file given: ";
    for (const char *at = err; *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : "")
        if (strncmp(at, begin, sizeof begin - 1) != 0 &&
            strncmp(at, samples, sizeof samples - 1) != 0)
            return false;
    return true;
}

void check_run(const char *command) {
    program_result r = program_run("%s", command);
    if (r.status != 0 || !only_warnings(r.err))
        fail_msg("%s: exit %d: %s", command, r.status, r.err);
    program_free(&r);
}

void check_fails(const char *command, int status, const char *part) {
    program_result r = program_run("%s", command);
    if (r.status != status || !strstr(r.err, part))
        fail_msg("%s: exit %d instead of %d, or no '%s' in: %s", command, r.status, status, part,
                 r.err);
    assert_string_equal(r.out, "");
    program_free(&r);
}
