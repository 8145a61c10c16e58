"""What the words on the pages mean: headings and labels look their meaning up here, so that each has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TERMS: Final[Mapping[str, str]] = {
    "95% interval": "Where the figure would lie in 95 of 100 repetitions with other queries of the same kind.",
    "Agent": "A system under evaluation: what answers the queries.",
    "Agrees with a vote": "How often the judge says what a person said, in percent.",
    "Alpha": "Krippendorff's alpha: 1 is full agreement, 0 no more than chance.",
    "Alpha, ordinal": "Krippendorff's alpha of labels with an order: the farther apart two are, the more it counts.",
    "Bradley-Terry": "Strength in points that best explains all games at once. 100 points more is 64 % of the decided "
    "games; 400 more is 10 to 1.",
    "Bias": "Mean of the judge's figures less people's.",
    "Coverage": "Share of what was wanted that is there.",
    "Decided": "Share of the games with a winner.",
    "Elo": "Mean Elo rating over many random orders of the same games.",
    "Failed": "The judge gave no usable reply, also when asked again. A failure is never counted as a label.",
    "Games": "Rated games: both orders of a pair on a query count as one; with a position term every verdict is one.",
    "Grade": "How well a passage answers an exam item, as the judge grades it.",
    "Group": "Agents that share a letter cannot be told apart; tests are corrected for the number of pairs.",
    "Judge": "The language model, or other program, that compares answers or labels documents.",
    "Judges differ": "Share of the games of several judges on which they do not agree.",
    "Kappa": "Cohen's kappa: agreement beyond chance. 1 is full agreement, 0 no more than chance.",
    "Kappa, linear": "Cohen's kappa in which a disagreement counts by its distance.",
    "Kappa, quadratic": "Cohen's kappa in which a disagreement counts by the square of its distance.",
    "Kendall's tau": "Whether two rankings put the agents in one order: 1 the same, 0 unrelated, -1 the reverse.",
    "Kendall's tau-b": "Rank correlation of values with ties: 1 the same order, 0 unrelated, -1 the reverse.",
    "Label": "How relevant a document is to a query: 0 is not relevant, higher is more relevant.",
    "Left": "Wanted, and not asked for yet.",
    "Lost": "Rated games that the agent lost.",
    "Mean label": "Mean of the labels of the agent's documents; failed ones are left out.",
    "Nugget": "A fact that a good answer to the query states.",
    "Order noise": "Standard deviation of Elo over the orders of the games. It says how much the order of play "
    "matters, not how sure the rating is: it is no confidence interval.",
    "Orders": "Whether the verdicts of the two orders differ: each game is judged twice, with the answers exchanged.",
    "Orders agree": "Share of the games judged in both orders that ended alike in both.",
    "Orders differ": "Share of the games judged in both orders whose verdicts differ.",
    "p, corrected": "How likely so clear a difference would be between equals, corrected for the number of pairs "
    "(Holm). Small is significant.",
    "Pearson": "Pearson's correlation: 1 is a rising line, 0 unrelated, -1 a falling line.",
    "Percent": "Share of its games against the other agent that the agent took, in percent.",
    "Query": "The question that all agents answered.",
    "Rank": "One more than the number of agents with a higher rating.",
    "Ranks (95%)": "All agents' true ranks lie in these at once, at 95% confidence.",
    "Result": "How the rated game ended, both orders together.",
    "Same label": "Share of the documents with both labels where the two are equal.",
    "Separation": "Spread times agreement: how much more of the points on this query goes to an agent that is one "
    "standard deviation better on all others. Below 0, the query turns the order round.",
    "Spearman": "Spearman's rank correlation: 1 the same order, 0 unrelated, -1 the reverse.",
    "Spearman's rho": "Rank correlation: 1 the same order, 0 unrelated, -1 the reverse.",
    "Spread": "Standard deviation of the agents' shares of points on the query; 0 where all are alike.",
    "Tied": "Rated games without a winner.",
    "Weight": "How much an item counts in the score.",
    "Won": "Rated games that the agent won.",
}
"""By heading."""
