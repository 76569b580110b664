#: title discrepancy by depth: TID of every site, in the order of the forward pass (Regularized BN)
#: question running
#: runs 1- RUN.h5 [MORE.h5...]
#: samples nlp_bn cv_bn
#: size 6.75 2.3
#: tasks one
#: controls y scale steps
#: site *
#: table m stat-tid {run} --stat mean --site {site} --phase {steps}
#: table v stat-tid {run} --stat var --site {site} --phase {steps}
#: table? w stat-tid {runs} --stat mean,var --site {site} --phase {steps}
# Point: median over the steps of the run; bar: from the 1 % to the 99 % quantile. In percent, as in the paper's
# tables, which give the last site. A site's place is its depth in the forward pass, as everywhere.

legend_count = runs
do for [r=1:runs] {
    legend_text[r] = run_label[r]
    legend_type[r] = r
}
eval LEFT_OUT('m')
eval LEGEND_ROOM
pad_left = 0.68
gap_x = 0.8
set xlabel 'depth of the site, from the input' offset 0,0.7
set pointsize 0.45
stats m using m_q01 nooutput name 'MLOW'
stats m using m_q99 nooutput name 'MHIGH'
stats v using v_q01 nooutput name 'VLOW'
stats v using v_q99 nooutput name 'VHIGH'
stats m using m_depth nooutput name 'DEPTH'
least(a) = a > 0 ? 100 * a : 0.01
# Runs side by side within a site.
place(r) = (r - 0.5 * (runs + 1)) * 0.5 / runs
set xrange [DEPTH_min - 0.7:DEPTH_max + 0.7] noextend

eval SIDE_BY_SIDE(2)
eval depth_tics(DEPTH_max - DEPTH_min, int(panel_width(stacked ? 1 : 2) / 0.22))
set multiplot
eval panel(1, 2, 1, 1)
eval log_y(least(MLOW_min), 100 * MHIGH_max)
set ylabel 'mean TID (%)' offset -0.3,0
plot for [r=1:runs] m index r-1 using (column(m_depth)+place(r)):(100*column(m_median)):(100*column(m_q01)):(100*column(m_q99)) \
         with yerrorbars linetype r linewidth 0.6 dashtype solid
eval panel(2, 2, 1, 1)
eval log_y(least(VLOW_min), 100 * VHIGH_max)
set ylabel 'variance TID (%)' offset -0.3,0
plot for [r=1:runs] v index r-1 using (column(v_depth)+place(r)):(100*column(v_median)):(100*column(v_q01)):(100*column(v_q99)) \
         with yerrorbars linetype r linewidth 0.6 dashtype solid
eval LEGEND_DRAW
unset multiplot
