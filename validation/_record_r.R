# Records what programs in R answer, for agrees_with_r.py. From the repository's root, on Debian:
#
#   apt-get install --no-install-recommends r-base-core r-cran-ade4 r-cran-boot r-cran-jsonlite r-cran-lme4 \
#       r-cran-psy r-cran-psych r-cran-survey r-cran-vcd r-cran-vegan
#   Rscript validation/_record_r.R > validation/recorded_r.json
#
# The data are simulated here and written beside the answers, so that the claim needs nothing else. They were made so
# that no variance component is estimated below zero: lme4 would answer 0 there, where this package stays negative.

suppressPackageStartupMessages(for (name in c("lme4", "vegan", "survey")) library(name, character.only = TRUE))

calls <- list()
answers <- list()
record <- function(name, call, value) {
  calls[[name]] <<- call
  answers[[name]] <<- as.list(value)
}

# --- one item: prompts x orders x calls, scores 1 to 5 ---------------------------------------------------------------

set.seed(20261130, kind = "Mersenne-Twister", normal.kind = "Inversion", sample.kind = "Rejection")
K <- 5; L <- 3; R <- 4
cell <- expand.grid(call = seq_len(R), order = seq_len(L), prompt = seq_len(K))
mean_of <- 3 + rnorm(K)[cell$prompt] + .6 * rnorm(L)[cell$order] +
  .5 * rnorm(K * L)[(cell$prompt - 1) * L + cell$order]
cell$score <- pmin(5, pmax(1, round(mean_of + .8 * rnorm(nrow(cell)))))
cell <- transform(cell, prompt = factor(prompt), order = factor(order))

squares <- function(formula, data) {
  table <- summary(aov(formula, data))[[1]]
  rows <- trimws(rownames(table))
  list(ss = setNames(as.list(table[["Sum Sq"]]), rows), ms = setNames(as.list(table[["Mean Sq"]]), rows))
}
two_way <- squares(score ~ prompt * order, cell)
record("aov", "summary(aov(score ~ prompt * order))", two_way)

fitted <- lmer(score ~ 1 + (1 | prompt) + (1 | order) + (1 | prompt:order), cell, control = lmerControl(
  optimizer = "bobyqa", optCtrl = list(rhoend = 1e-12, maxfun = 1e5), calc.derivs = FALSE))
variances <- as.data.frame(VarCorr(fitted))
stopifnot(all(variances$vcov > 1e-3))
record("lmer", "lmer(score ~ 1 + (1|prompt) + (1|order) + (1|prompt:order))", setNames(variances$vcov, variances$grp))

# Distances between verdicts whose squares are twice the disagreement.
m <- 5
apart <- abs(outer(1:m, 1:m, "-"))
kernels <- list(nominal = 1 * (apart > 0), ordinal = apart / (m - 1), interval = apart^2 / 2)
for (name in names(kernels)) {
  distance <- as.dist(sqrt(2 * kernels[[name]])[cell$score, cell$score])
  table <- adonis2(distance ~ prompt * order, cell, permutations = 0, by = "terms")
  record(paste0("adonis2, ", name), "adonis2(sqrt(2 * D) ~ prompt * order, by = 'terms')$SumOfSqs",
         setNames(table$SumOfSqs, rownames(table)))
}

# --- items x prompts x calls, scores 1 to 4 --------------------------------------------------------------------------

N <- 8; P <- 5; S <- 3
many <- expand.grid(call = seq_len(S), prompt = seq_len(P), item = seq_len(N))
mean_of <- 2.5 + .7 * rnorm(N)[many$item] + .5 * rnorm(P)[many$prompt] +
  .6 * rnorm(N * P)[(many$item - 1) * P + many$prompt]
many$score <- pmin(4, pmax(1, round(mean_of + .6 * rnorm(nrow(many)))))
many <- transform(many, item = factor(item), prompt = factor(prompt))

record("aov, items", "summary(aov(score ~ item * prompt))", squares(score ~ item * prompt, many))

jackknife <- function(values) {
  n <- length(values)
  sqrt((n - 1) / n * sum((values - mean(values))^2))
}
wide <- function(data) {
  ms <- squares(score ~ item * prompt, droplevels(data))$ms
  (P - 1) / (P * S * nlevels(droplevels(data)$item)) * (ms$prompt - ms[["item:prompt"]])
}
left_out <- sapply(levels(many$item), function(i) wide(subset(many, item != i)))
record("jackknife over items", "aov without each item in turn: benchmark-wide effect of a census of prompts",
       list(estimate = wide(many), se = jackknife(left_out)))

nested <- function(data) {
  # Balanced one-way tables: components of the mean over items follow from the pooled mean squares.
  ms <- squares(score ~ item / prompt, droplevels(data))$ms
  c(call = ms$Residuals, prompt = (ms[["item:prompt"]] - ms$Residuals) / S)
}
left_out <- sapply(levels(many$prompt), function(p) nested(subset(many, prompt != p)))
record("jackknife over prompts", "aov(score ~ item / prompt) without each prompt in turn",
       list(estimate = as.list(nested(many)), se = as.list(apply(left_out, 1, jackknife))))

apart <- abs(outer(1:4, 1:4, "-"))
samples <- as.data.frame.matrix(table(many$score, interaction(many$prompt, many$item)))
for (kernel in c("nominal", "ordinal")) {
  D <- if (kernel == "nominal") 1 * (apart > 0) else apart / 3
  found <- ade4::amova(samples, as.dist(sqrt(2 * D)), data.frame(item = gl(N, P)))
  sigma <- found$componentsofcovariance
  record(paste0("amova, ", kernel), "amova(counts, sqrt(2 * D), items)$componentsofcovariance$Sigma",
         setNames(sigma$Sigma, trimws(rownames(sigma))))
}

ratings <- t(matrix(many$score, ncol = N))
shares <- psych::ICC(ratings, lmer = FALSE)$results
record("ICC", "psych::ICC(items by calls, lmer = FALSE)", list(ICC1 = shares["Single_raters_absolute", "ICC"]))

# --- a mean over items, and p values ---------------------------------------------------------------------------------

values <- round(rexp(14)^1.5 / 4 - .1, 6)
strata <- rep(1:3, c(5, 4, 5))
test <- t.test(values)
record("t.test", "t.test(values)", list(se = test$stderr, lower = test$conf.int[1], upper = test$conf.int[2]))

within <- data.frame(y = values, g = strata, w = 1)
design <- svydesign(ids = ~1, strata = ~g, weights = ~w, data = within)
total <- svymean(~y, design)
record("survey", "SE(svymean(~y, svydesign(~1, strata = ~g, weights = ~1)))", list(se = as.numeric(SE(total))))

drawn <- boot::boot(values, function(x, i) mean(x[i]), R = 399)
drawn$t <- round(drawn$t, 12)
ends <- boot::boot.ci(drawn, type = "bca", L = boot::empinf(drawn, type = "jack"))$bca
record("boot", "boot.ci(boot(values, mean, 399), type = 'bca', L = empinf(type = 'jack')): adjusted levels",
       list(lower = ends[2] / 400, upper = ends[3] / 400))

p_values <- c(.001, .008, .008, .039, .041, .042, .06, .074, .205, .5, .9, 1)
record("p.adjust", "p.adjust(p, 'BH'), p.adjust(p, 'holm')",
       list(BH = p.adjust(p_values, "BH"), holm = p.adjust(p_values, "holm")))

# --- three raters of thirty items on a scale of four -----------------------------------------------------------------

truth <- sample(4, 30, replace = TRUE)
raters <- sapply(1:3, function(r) pmin(4, pmax(1, truth + sample(-1:1, 30, replace = TRUE, prob = c(.2, .6, .2)))))
both <- table(factor(raters[, 1], 1:4), factor(raters[, 2], 1:4))
pair <- psych::cohen.kappa(raters[, 1:2])
record("cohen.kappa", "psych::cohen.kappa(two raters)", list(nominal = pair$kappa, quadratic = pair$weighted.kappa))
record("Kappa", "vcd::Kappa(table, weights)",
       list(nominal = vcd::Kappa(both)$Unweighted[["value"]],
            linear = vcd::Kappa(both, weights = "Equal-Spacing")$Weighted[["value"]],
            quadratic = vcd::Kappa(both, weights = "Fleiss-Cohen")$Weighted[["value"]]))
record("lkappa", "psy::lkappa(three raters, type = 'Cohen')", list(nominal = psy::lkappa(raters, type = "Cohen")))
record("lkappa, weighted", "psy::lkappa(three raters, type = 'weighted', weights = 'absolute' and 'squared')",
       list(linear = psy::lkappa(raters, type = "weighted", weights = "absolute"),
            quadratic = psy::lkappa(raters, type = "weighted", weights = "squared")))

# --- out: one line for each part -------------------------------------------------------------------------------------

packages <- c("ade4", "boot", "lme4", "psy", "psych", "survey", "vcd", "vegan")
parts <- list(
  schema = "secondorder.recorded/1",
  program = R.version.string,
  packages = lapply(setNames(packages, packages), function(name) as.character(packageVersion(name))),
  date = as.character(Sys.Date()),
  script = "validation/_record_r.R",
  calls = calls,
  data = list(
    cells = list(shape = c(K, L, R), scores = cell$score),
    items = list(shape = c(N, P, S), scores = many$score),
    values = values, strata = strata, draws = as.vector(drawn$t), pvalues = p_values, raters = raters
  ),
  answers = answers
)
lines <- sapply(names(parts), function(name) {
  paste0("\"", name, "\": ", jsonlite::toJSON(parts[[name]], auto_unbox = TRUE, digits = NA))
})
cat("{", paste(lines, collapse = ",\n"), "}", sep = "\n")
