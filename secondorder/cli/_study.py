"""``secondorder study``: one command for each study."""

from __future__ import annotations

from cyclopts import App

from secondorder.cli._study_agreement import agreement, lottery
from secondorder.cli._study_designs import design
from secondorder.cli._study_prompts import paraphrase
from secondorder.cli._study_votes import aggregate, gate

study = App(name="study", help="Study a judge: agreement, prompt lottery, aggregation, gates, designs, paraphrases.")

study.command(agreement, sort_key=1)
study.command(lottery, sort_key=2)
study.command(paraphrase, sort_key=3)
study.command(aggregate, sort_key=4)
study.command(gate, sort_key=5)
study.command(design, sort_key=6)
