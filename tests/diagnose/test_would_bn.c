/* statrec diagnose on observed sites of recorded runs: would BN work there? */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "found.h"
#include "testing/check.h"

/* Sites a, b, c are observed; c is beyond the limit. BN may be tried at the other sites. */
static void would_bn(void **state) {
    char words[128];
    (void)state;
    program_result r =
        check_found(&(plan){"observed", 2, .offset = 0.4, .samples = 4, .all_observed = true,
                            .more_pn = -1, .without_pairs = true},
                    "would-bn", "notable", "c");
    const int row = row_of(&r, "would-bn");
    const double limit = table_real(r.out, row, "limit"), value = table_real(r.out, row, "value"),
                 low = table_real(r.out, row, "low"), high = table_real(r.out, row, "high");
    check_text(&r, row, "statistic", "tid_mean");
    check_cell(&r, row, "sites_asked", 3);
    check_cell(&r, row, "sites_beyond", 1);
    says(&r, "would-bn", "Not by what is observed: at 1 of 3 sites the running statistics");
    says(&r, "would-bn", "worst: c (tid_mean 0.40");
    says(&r, "would-bn",
         "A batch has 2048 rows of 4 samples at c, and the observer's alpha is 0.9");
    says(&r, "would-bn", "independent rows would have a tid_mean of 0.0227");
    snprintf(words, sizeof words, "within the limit from %g rows on",
             ceil(2 / 1.9 / limit / limit));
    says(&r, "would-bn", words);
    snprintf(words, sizeof words, "it takes about %g [%g, %g] samples",
             ceil(4 * pow(value / limit, 2)), ceil(4 * pow(low / limit, 2)),
             ceil(4 * pow(high / limit, 2)));
    says(&r, "would-bn", words);
    says(&r, "would-bn",
         "are 0 of 3 sites. Within all of these limits, so that BN may be tried "
         "there, are 2 of them: a, b.");
    says(&r, "would-bn", "in a network that was trained with own-rows");
    advises(&r, "would-bn", "own-rows, unchanged, at these sites; RBN", true);
    advises(&r, "would-bn", "; more rows in a batch", true);
    check_text(&r, row_of(&r, "inference"), "verdict", "not-asked");
    program_free(&r);
    r = diagnose("");
    const char *head = strstr(r.out, "\nWould BN work here?\n"),
               *verdict = strstr(r.out, "1 FINDING");
    assert_true(head && verdict && head < verdict);
    assert_non_null(strstr(verdict, "See the top of this page."));
    assert_null(strstr(verdict, "Not by what is observed"));
    program_free(&r);
}

/* A site is beyond the limit by either discrepancy, whichever the row reports. */
static void would_bn_either(void **state) {
    (void)state;
    program_result r = advice((plan){"both", 2, .offset = 0.4, .sigma = 1.3, .all_observed = true});
    check_cell(&r, row_of(&r, "would-bn"), "sites_beyond", 2);
    says(&r, "would-bn", "at 2 of 3 sites the running statistics would not");
    says(&r, "would-bn", "c (tid_mean 0.4");
    says(&r, "would-bn", "a (tid_var 0.3");
    says(&r, "would-bn", "is 1 of them: b.");
    program_free(&r);
}

/* For runs of statrec train the option is given, prepended to the run's value. */
static void would_bn_placed(void **state) {
    plan p = {"observed", 2, .offset = 0.4, .all_observed = true,
              .config = "norm-at = a=rmsnorm\n"};
    (void)state;
    write_planted_run(&p);
    program_result r = diagnose("--format tsv");
    says(&r, "would-bn",
         "are 2 of them (--norm-at 'a=bn,b=bn,a=rmsnorm', the others as they are).");
    program_free(&r);
    p = (plan){"gradient", 0, .gradient = 8, .all_observed = true, .config = "record-sites = *\n"};
    write_planted_run(&p);
    r = diagnose("--format tsv");
    check_text(&r, row_of(&r, "would-bn"), "verdict", "in-order");
    says(&r, "would-bn", "of the norm of the input gradient at a, the worst (g_mu_share)");
    says(&r, "would-bn", "are 1 of 3 sites.");
    says(&r, "would-bn", "are 2 of them (--norm-at 'b=bn,c=bn', the others");
    program_free(&r);
    /* all sites may have BN, and the file leaves out none */
    p = (plan){"all", -1, .all_observed = true, .more_pn = -1, .config = "record-sites = *\n"};
    write_planted_run(&p);
    r = diagnose("--format tsv");
    says(&r, "would-bn", "are 3 of them (--norm-at '*=bn').");
    program_free(&r);
    p.config = "record-sites = a,b,c\n";
    write_planted_run(&p);
    r = diagnose("--format tsv");
    says(&r, "would-bn", "are 3 of them (--norm-at 'a=bn,b=bn,c=bn', the others as they are).");
    program_free(&r);
}

static void would_bn_healthy(void **state) {
    (void)state;
    write_planted_run(&(plan){"observed", -1, .all_observed = true});
    program_result r = diagnose("--format tsv");
    assert_int_equal(findings(&r), 0);
    says(&r, "would-bn",
         "The running statistics are as near to those of batches as usual at all of 3 ");
    says(&r, "would-bn",
         "how one trained with BN would fare, whose x and g are others, it does not");
    program_free(&r);
    r = diagnose("");
    assert_non_null(strstr(r.out, "\nWould BN work here?\n"));
    assert_non_null(strstr(r.out, "HEALTHY: nothing found"));
    program_free(&r);
}

/* An interval that contains the limit is inconclusive; such a site is not suggested. */
static void would_bn_open(void **state) {
    (void)state;
    write_planted_run(&(plan){"observed", 2, .offset = 0.4, .all_observed = true});
    program_result r = diagnose("--format tsv");
    const double limit = table_real(r.out, row_of(&r, "would-bn"), "limit");
    program_free(&r);
    write_planted_run(
        &(plan){"open", 2, .offset = sqrt(limit * limit - 0.0025 * 2 / 1.9), .all_observed = true});
    r = diagnose("--format tsv");
    check_text(&r, row_of(&r, "would-bn"), "verdict", "in-order");
    says(&r, "would-bn", "Not told by what is observed: at none of 3 sites");
    says(&r, "would-bn", "but at 1 the interval holds the limit; worst: c (tid_mean");
    holds(&r, "would-bn", "text", "), b (", false);
    says(&r, "would-bn", "are 2 of them: a, b.");
    program_free(&r);
}

/* More samples do not help if the rows of a sample are alike; independent rows need no remark. */
static void would_bn_alike(void **state) {
    (void)state;
    write_planted_run(&(plan){"alike", 1, .samples = 1024, .noise = 0.12, .all_observed = true});
    program_result r = diagnose("--format tsv");
    says(&r, "would-bn", "More than independent samples could show is seen (like_samples 3.");
    says(&r, "would-bn", "more of them need not help.");
    holds(&r, "would-bn", "text", "it takes about", false);
    program_free(&r);
    r = advice((plan){"alike", 1, .samples = 1024, .offset = 0.4, .all_observed = true});
    check_text(&r, row_of(&r, "would-bn"), "verdict", "found");
    advises(&r, "would-bn", "more rows", false);
    program_free(&r);
    write_planted_run(&(plan){"rows", 1, .rows = 64, .noise = 0.1, .all_observed = true});
    r = diagnose("--format tsv");
    holds(&r, "would-bn", "text", "Rows of a sample are not", false);
    holds(&r, "would-bn", "text", "like_samples", false);
    program_free(&r);
}

static void would_bn_not_asked(void **state) {
    (void)state;
    write_planted_run(&(plan){.name = "own", .site = -1});
    program_result r = diagnose("--format tsv");
    check_text(&r, row_of(&r, "would-bn"), "text",
               "sites have batch statistics of their own, none is observed");
    program_free(&r);
    write_ln_run(program_file("run.h5"));
    r = diagnose("--format tsv");
    check_text(&r, row_of(&r, "would-bn"), "text", "nothing is observed");
    program_free(&r);
}

/* Evaluation does not use the observer's statistics: a finding describes the input that BN would
 * get. */
static void dead_observed(void **state) {
    (void)state;
    program_result r =
        check_found(&(plan){"observed", 1, .dead = 3, .observed = true}, "dead", "notable", "b");
    says(&r, "dead", "of own-rows.");
    program_free(&r);
    r = check_found(&(plan){"tapped", 1, .dead = 3, .observed = true, .row_method = "none"}, "dead",
                    "notable", "b");
    says(&r, "dead", "with the x and g of a tensor without normalization.");
    program_free(&r);
    r = advice((plan){"tapped", 2, .offset = 0.4, .all_observed = true, .row_method = "none"});
    says(&r, "would-bn", "in a network that was trained without normalization there: how");
    advises(&r, "would-bn", "no normalization, unchanged, at these sites; RBN", true);
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(would_bn),           cmocka_unit_test(would_bn_either),
        cmocka_unit_test(would_bn_placed),    cmocka_unit_test(would_bn_healthy),
        cmocka_unit_test(would_bn_open),      cmocka_unit_test(would_bn_alike),
        cmocka_unit_test(would_bn_not_asked), cmocka_unit_test(dead_observed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
