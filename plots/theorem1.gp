#: title AdaNorm Theorem 1: mean and variance of the gradient behind a normalization, measured against exact values
#: runs 1-8 RUN.h5 [MORE.h5...]
#: samples nlp_detach_both nlp_ln_simple nlp_detach_mean nlp_detach_std
#: size 6.75 2.4
#: site *
#: table g stat-lngrad {run} --site {site}
# Cases by what the backward pass takes for a constant: a mean and deviation, b neither, c the mean, d the deviation.
# Over the features of a row, averaged over rows, medians over the steps. Left: mean of dx in deviations of dx; the
# theorem says 0 for b and d. Right: variance of dx. Filled: measured; ring: exact (files
# recorded before there was one have none). stat-lngrad prints the largest difference of any step.

array case_of[runs]
array sites_of[runs]
do for [r=1:runs] {
    case_of[r] = '-'
    sites_of[r] = 0
    stats g index r-1 using (case_of[r] = strcol(g_case), sites_of[r] = sites_of[r] + 1, 1) nooutput name 'CASE'
    legend_text[r] = (case_of[r] eq '-' ? '' : case_of[r].': ').run_label[r]
    legend_type[r] = r
    legend_mark[r] = 1
}
legend_count = runs + 1
legend_text[runs+1] = 'exact'
legend_type[runs+1] = published_type(1)
legend_mark[runs+1] = 1
pad_left = 0.85
gap_x = 0.85
sites = sites_of[1]
do for [r=1:runs] { sites = sites_of[r] > sites ? sites_of[r] : sites }

# Runs side by side within a site.
place(r) = column(0) + 1 + (r - 0.5 * (runs + 1)) * 0.6 / runs
measured(i) = column(g_grad_mean) / sqrt(column(g_grad_var))
exact(i) = column(g_exact_mean) / sqrt(column(g_exact_var))
eval span_of('g', 'g_grad_mean', 'measured(0)')
mean_low = span_count > 0 ? span_low : 0
mean_high = span_count > 0 ? span_high : 0
eval span_of('g', 'g_exact_mean', 'exact(0)')
if (span_count > 0) {
    mean_low = span_low < mean_low ? span_low : mean_low
    mean_high = span_high > mean_high ? span_high : mean_high
}
eval span('g', 'g_grad_var')
if (span_count == 0) { eval refuse('no finite gradient of a row') }
var_low = span_low > 0 ? span_low : 1e-12
var_high = span_high > 0 ? span_high : 1
eval span('g', 'g_exact_var')
if (span_count > 0 && span_low > 0) {
    var_low = span_low < var_low ? span_low : var_low
    var_high = span_high > var_high ? span_high : var_high
}
known_exact = span_count
if (known_exact == 0) { legend_count = runs }
# Rounding is not to fill the axis.
mean_low = mean_low > -1e-4 ? -1e-4 : mean_low
mean_high = mean_high < 1e-4 ? 1e-4 : mean_high

eval LEGEND_ROOM
set xlabel 'site, from the input' offset 0,0.7
set xrange [0.4:sites + 0.6] noextend
eval sprintf('set xtics 1,%d', sites < 9 ? 1 : tic_step(sites, 8))
set pointsize 0.45

set multiplot
eval panel(1, 2, 1, 1)
eval linear_y(mean_low, mean_high)
set ylabel 'mean of d{/:Italic x} / its deviation' offset 0.4,0
plot for [r=1:runs] g index r-1 using (place(r)):(measured(0)) with points linetype r, \
     for [r=1:runs] g index r-1 using (place(r)):(exact(0)) with points linetype published_type(1) pointsize 0.9
eval panel(2, 2, 1, 1)
eval log_y(var_low, var_high)
set ylabel 'variance of d{/:Italic x}' offset 0.6,0
plot for [r=1:runs] g index r-1 using (place(r)):g_grad_var with points linetype r, \
     for [r=1:runs] g index r-1 using (place(r)):g_exact_var with points linetype published_type(1) pointsize 0.9
eval LEGEND_DRAW
unset multiplot
