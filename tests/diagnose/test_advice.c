/* Advice of statrec diagnose: it applies to the run and its worst site, and contains nothing
 * else. */
#include <string.h>

#include "found.h"
#include "testing/check.h"

/* Other host programs do not have the options of statrec train. */
static void advice_of_hosts(void **state) {
    static const plan plans[] = {
        {"nan", 1, .nan_at = 150},
        {"gap", 2, .gap = 0.3, .offset = 0.4},
        {"spikes", 1, .spikes_every = 30},
        {"gradient", 2, .gradient = 8},
        {"nu", 3, .Gamma = 30},
        {"dead", 1, .dead = 3},
        {"growth", 2, .growth = 12},
        {"padding", -1, .padded = 2},
        {"rows", -1, .rows = 8},
        {"alike", 1, .samples = 1024, .noise = 0.12},
        {"slow", 2, .alpha = 0.999, .anew = true},
        {"collapse", -1, .collapses = true},
        {"observed", 2, .offset = 0.4, .all_observed = true},
    };
    (void)state;
    for (size_t k = 0; k < sizeof plans / sizeof plans[0]; k++) {
        program_result r = advice(plans[k]);
        if (findings(&r) == 0) fail_msg("%s is not found", plans[k].name);
        for (int i = 0; i < table_rows(r.out); i++) {
            const char *text = table_cell(r.out, i, "advice");
            if (strstr(text, "--") || strstr(text, "statrec"))
                fail_msg("%s: %s", plans[k].name, text);
            const bool any = strlen(text) > 5;
            assert_int_equal(any, strcmp(table_cell(r.out, i, "verdict"), "found") == 0);
            assert_null(strstr(table_cell(r.out, i, "text"), "--"));
        }
        program_free(&r);
    }
    program_result r = advice((plan){"spikes", 1, .spikes_every = 30, .other_host = true,
                                     .config = "batching = bucketed\nbatch-size = 8\n"});
    advises(&r, "outliers", "; more rows in a batch", true);
    advises(&r, "outliers", "a pass", false);
    advises(&r, "outliers", "drawn at random", false);
    program_free(&r);
}

/* The run's own settings are no advice. */
static void advice_of_method(void **state) {
    plan p = {"gap", 2, .gap = 0.3, .offset = 0.4, .config = "norm = x\n"};
    (void)state;
    program_result r = advice(p);
    advises(&r, "inference", "RBN, whose penalty draws the two together (--norm rbn", true);
    advises(&r, "inference", "more weight", false);
    advises(&r, "inference", "(--norm-at 'c=ln')", true);
    program_free(&r);
    p.method = "rbn";
    r = advice(p);
    advises(&r, "inference", "RBN, whose", false);
    advises(&r, "inference",
            "a larger weight of the penalty that draws the two together (--rbn-lam", true);
    program_free(&r);
    r = advice((plan){"nu", 3, .Gamma = 30, .config = "norm = pn\n"});
    advises(&r, "nu", "a layer scale, which bounds Gamma", true);
    advises(&r, "nu", "--norm pn-released", true);
    program_free(&r);
    r = advice((plan){"nu", 3, .Gamma = 30, .config = "norm = pn\n", .layer_scale = 2});
    advises(&r, "nu", "a layer scale", false);
    program_free(&r);
    r = advice((plan){"slow", 2, .alpha = 0.999, .anew = true});
    advises(&r, "alpha", "the better alpha above, which changes evaluation alone", true);
    program_free(&r);
    r = advice((plan){"slow", 2, .alpha = 0.999, .anew = true, .method = "rbn"});
    check_text(&r, row_of(&r, "alpha"), "advice", "the better alpha above");
    program_free(&r);
}

/* Only methods marked in their table (norm_method.synchronises) compute statistics over all
 * shards. */
static void advice_of_shards(void **state) {
    static const struct {
        const char *method;
        bool wanted;
    } cases[] = {{"bn", true},   {"un", true},    {"repbn", true},         {"pnv", true},
                 {"brn", false}, {"mabn", false}, {"bn-powernorm", false}, {"own-bn", false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        program_result r = advice((plan){"spikes", 1, .spikes_every = 30, .method = cases[i].method,
                                         .config = "shares = 2\nsync-norm = no\n"});
        advises(&r, "outliers", "--sync-norm", cases[i].wanted);
        program_free(&r);
    }
}

/* Options that the run has or lacks, and their values. */
static void advice_of_options(void **state) {
    static const struct {
        const char *config, *question, *words;
        bool wanted;
    } cases[] = {
        {"placement = pre\n", "divergence", "--placement", false},
        {"placement = post\n", "divergence", "--placement pre", true},
        {"init = he\n", "divergence", "--placement", false},
        {"warmup-updates = 0\n", "divergence", "a warm-up (--warmup-updates)", true},
        {"warmup-updates = 100\n", "divergence", "a longer warm-up (--warmup-updates)", true},
        {"warmup-updates = 100\n", "divergence", "; a warm-up", false},
        {"clip-norm = 0\n", "divergence", "; a bound on the gradient norm (--clip-norm)", true},
        {"clip-norm = 1\n", "divergence", "a lower bound on the gradient norm (--clip", true},
        {"batching = bucketed\n", "outliers", "--batching random", true},
        {"batching = random\n", "outliers", "--batching", false},
        {"batch-size = 8\n", "outliers", "--batching", false},
        {"batch-size = 8\n", "outliers", "more rows in a pass (--batch-size)", true},
        {"max-tokens = 8\n", "outliers", "more rows in a pass (--max-tokens)", true},
        {"max-tokens = 8\n", "outliers", "--batch-size", false},
        {"batch-size = 8\nmax-tokens = 8\nbatch-by = tokens\n", "outliers", "--batch-size", false},
        {"batch-size = 8\nmax-tokens = 8\nbatch-by = sentences\n", "outliers", "--max-tok", false},
        {"update-freq = 4\n", "outliers", "--update-freq", true},
        {"update-freq = 1\n", "outliers", "--update-freq", false},
        {"shares = 2\nsync-norm = no\n", "outliers", "--sync-norm", true},
        {"shares = 2\nsync-norm = yes\n", "outliers", "--sync-norm", false},
        {"shares = 1\n", "outliers", "--sync-norm", false},
        {"batching = random\n", "padding", "--batching bucketed", true},
        {"batching = bucketed\nmax-tokens-of = padded\n", "padding", "--batching", false},
        {"batching = bucketed\nmax-tokens-of = padded\n", "padding", "--max-tokens-of valid", true},
        {"batching = bucketed\nmax-tokens-of = valid\n", "padding", "--", false},
        {"batching = bucketed\nmax-tokens-of = valid\n", "padding", "a check of the batches", true},
        {"weight-decay = 0\n", "growth", "; weight decay (--weight-decay)", true},
        {"weight-decay = 0.1\n", "growth", "more weight decay (--weight-decay)", true},
        {"checkpoint-every = none\n", "inference", "--checkpoint-every end; then statrec av", true},
        {"checkpoint-every = end\n", "inference", "--checkpoint-every", false},
        {"checkpoint-every = end\n", "inference", "(statrec evaluate X.ckpt --each-site)", true},
        {"norm-at = a=bn\n", "inference", "(--norm-at 'c=ln,a=bn')", true},
        {"norm-at = a=bn\n", "inference", "(--norm-at 'c=pn+ls,a=bn')", true},
        {"decoder-norm = ln\n", "inference", "(--norm pn+ls)", true},
    };
    (void)state;
    program_result r = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (i == 0 || strcmp(cases[i].config, cases[i - 1].config) != 0) {
            program_free(&r);
            r = advice((plan){"all", 2, .nan_at = 290, .spikes_every = 30, .padded = 2,
                              .growth = 12, .offset = 0.6, .method = "bn",
                              .config = cases[i].config});
        }
        check_text(&r, row_of(&r, cases[i].question), "verdict", "found");
        advises(&r, cases[i].question, cases[i].words, cases[i].wanted);
    }
    program_free(&r);
}

/* A decoder has a separate option; the first files list unused options. */
static void advice_of_places(void **state) {
    plan p = {"gap", 2, .gap = 0.3, .offset = 0.4, .kind = "decoder", .config = "norm = bn\n"};
    (void)state;
    program_result r = advice(p);
    advises(&r, "inference", "(--norm pn+ls)", true);
    program_free(&r);
    p.config = "norm = bn\ndecoder-norm = bn\n";
    r = advice(p);
    advises(&r, "inference", "(--decoder-norm pn+ls)", true);
    program_free(&r);
    r = advice((plan){"spikes", 1, .spikes_every = 30, .whole = true,
                      .config = "batching = bucketed\nbatch-size = 8\nmax-tokens = 8\n"});
    advises(&r, "outliers", "(--batch-size)", true);
    advises(&r, "outliers", "--batching", false);
    advises(&r, "outliers", "--max-tokens", false);
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(advice_of_hosts),  cmocka_unit_test(advice_of_method),
        cmocka_unit_test(advice_of_shards), cmocka_unit_test(advice_of_options),
        cmocka_unit_test(advice_of_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
