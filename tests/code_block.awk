# usage: awk -v heading="## HEADING" -v language=c -f code_block.awk PAGE.md
# Prints the first code block of a language below a heading.
$0 == heading { below = 1 }
below && $0 == "```" && on { exit }
on { print }
below && $0 == "```" language { on = 1 }
