#: title scatter of batch means between the shards of each batch, against independent rows
#: question running
#: runs 1- RUN.h5 [MORE.h5...]
#: samples shares_bn
#: size 6.75 2.5
#: controls x y scale smooth
#: site *
#: table d stat-distance {run} --ranks --per-step --buckets {buckets} --site {site}
#: curves d by site x percent y spread_mean,expected_mean buckets 50
#: table e stat-distance {run} --ranks --site {site} --phase second-half
# Left: the median over the sites (of several), of each 1/50 of training the median; of one run its sites too, thin. Right: median
# and quartiles over the second half of training. Dotted: what independent rows would give. Of runs with --record-shards.

array whole[runs]
array shown[runs]
do for [r=1:runs] { whole[r] = 0; shown[r] = '' }
do for [k=1:d_curves] { whole[d_run[k]] = k; shown[d_run[k]] = d_key[k] }
set linetype 961 lc rgb '#B0B0B0' lw 0.4 dt solid
set linetype 962 lc rgb '#404040' lw 0.9 dt (2,2)
do for [r=1:runs] {
    legend_text[r] = run_label[r].(shown[r] eq '(median)' ? ' (median of the sites)' : ' ('.shown[r].')')
    legend_type[r] = r
}
legend_count = runs
thin = runs == 1 && shown[1] eq '(median)'
if (thin) {
    legend_count = legend_count + 1
    legend_text[legend_count] = 'each site'
    legend_type[legend_count] = 961
}
legend_count = legend_count + 1
legend_text[legend_count] = 'independent rows'
legend_type[legend_count] = 962
eval LEFT_OUT('e')
eval LEGEND_ROOM

# The axis of both panels spans what they draw.
low = 1e300
high = 0
sees(from, to) = (low = from > 0 && from < low ? from : low, high = to > high && to < 1e300 ? to : high)
do for [k=1:d_curves] {
    if (thin || whole[d_run[k]] == k) {
        eval span(sprintf('d index %d', k - 1), 'd_spread_mean')
        seen = span_count > 0 ? sees(span_low, span_high) : 0
        eval span(sprintf('d index %d', k - 1), 'd_expected_mean')
        seen = span_count > 0 ? sees(span_low, span_high) : 0
    }
}
eval span('e', 'e_spread_mean_q25')
seen = span_count > 0 ? sees(span_low, span_high) : 0
eval span('e', 'e_expected_mean')
seen = span_count > 0 ? sees(span_low, span_high) : 0
eval span('e', 'e_spread_mean_q75')
seen = span_count > 0 ? sees(span_low, span_high) : 0
if (high <= 0) { eval refuse('no step at which every shard has rows') }
stats e using (column(e_depth) < 0 ? NaN : column(e_depth)) nooutput name 'DEPTH'
# Runs side by side within a site.
place(r) = (r - 0.5 * (runs + 1)) * 0.5 / runs
half = 0.42 / runs
expected(r) = runs == 1 ? 962 : r
set ylabel 'scatter of {/:Italic μ_B} (% of {/:Italic σ_B})' offset 0.3,0

eval SIDE_BY_SIDE(2)
set multiplot
set xlabel 'training (%)' offset 0,0.7
eval percent_x(25)
eval panel(1, 2, 1, 1)
eval log_y(100 * low, 100 * high)
plot for [k=1:d_curves] d index k-1 using d_x:(thin && whole[1] != k ? 100 * column(d_spread_mean) : NaN) with lines linetype 961, \
     for [r=1:runs] d index whole[r]-1 using d_x:(100 * column(d_expected_mean)) with lines linetype expected(r) linewidth 0.9 dashtype (2,2), \
     for [r=1:runs] d index whole[r]-1 using d_x:(100 * column(d_spread_mean)) with lines linetype r linewidth 1.3
set xlabel 'depth of the site, from the input' offset 0,0.7
set xrange [DEPTH_min - 0.7:DEPTH_max + 0.7] noextend
eval depth_tics(DEPTH_max - DEPTH_min, 8)
set pointsize 0.45
eval panel(2, 2, 1, 1)
eval log_y(100 * low, 100 * high)
plot for [r=1:runs] e index r-1 using (column(e_depth)+place(r)-half):(100*column(e_expected_mean)):(2*half):(0) \
         with vectors nohead linetype expected(r) linewidth 0.9 dashtype (2,2), \
     for [r=1:runs] e index r-1 using (column(e_depth)+place(r)):(100*column(e_spread_mean)):(100*column(e_spread_mean_q25)):(100*column(e_spread_mean_q75)) \
         with yerrorbars linetype r linewidth 0.6 dashtype solid
eval LEGEND_DRAW
unset multiplot
