#: title PowerNorm figure 7: distribution of |gamma| / psi_B over features, per site
#: question features
#: runs 1 PNV.h5
#: samples nlp_pnv
#: size 6.75 2.5
#: controls y scale
#: site *
#: table q stat-gamma {run} --site {site}
# At the last recorded step. Box: quartiles and median over features; whiskers: smallest and largest. Lemma 2
# needs every value at or below the line at 1.

# Room for the names, which are turned by 35 degrees.
stats q using (strlen(strcol(q_site))) nooutput name 'NAME'
pad_bottom = (NAME_max < 40 ? NAME_max : 40) * 0.031 + 0.16
pad_left = 0.7
observed = strstrt(run_full[1], '(observed)') > 0 ? ', observed' : ''
set ylabel '|{/:Italic γ}| / {/:Italic ψ_B}'.observed offset 0.3,0
stats q using q_min nooutput name 'LEAST'
stats q using q_max nooutput name 'MOST'
set xtics rotate by 35 right noenhanced font ',7' scale 0 offset 0,0
set boxwidth 0.55
set style fill solid 0.3 border

set multiplot
eval panel(1, 1, 1, 1)
set xrange [-0.7:LEAST_records - 0.3]
eval log_y(LEAST_min > 0 ? LEAST_min : 0.001, MOST_max > 1 ? MOST_max : 1)
plot q using 0:q_q25:q_min:q_max:q_q75:xtic(q_site) with candlesticks linetype 1 whiskerbars 0.5, \
     q using 0:q_median:q_median:q_median:q_median with candlesticks linetype -1 linewidth 1.2, \
     1 with lines linecolor rgb '#D55E00' linewidth 0.8 dashtype 2
eval LEGEND_DRAW
unset multiplot
