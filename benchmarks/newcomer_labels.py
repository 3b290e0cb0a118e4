"""The roles of the columns of public tables, labelled by hand: see newcomer_roles.py."""

from __future__ import annotations

TRIED = {
    "Fair": "sex q, age q, ym q, child q, religious s, education q, occupation q, rate s, nbaffairs s",
    "pbc": "id i, time s, status s, trt s, age q, sex q, ascites s, hepato s, spiders s, edema s, bili s, chol s, "
    "albumin s, copper s, alk.phos s, ast s, trig s, platelet s, protime s, stage s",
    "medpar": "los s, hmo s, white q, died s, age80 q, type s, type1 s, type2 s, type3 s, provnum q",
    "Chile": "region q, population q, sex q, age q, education q, income s, statusquo s, vote s",
    "statsmodels:anes96": "popul q, TVnews s, selfLR s, ClinLR s, DoleLR s, PID s, age q, educ q, income s, vote s, "
    "logpopul q",
    "Wages": "exp q, wks s, bluecol q, ind q, south q, smsa q, married q, sex q, union s, ed q, black q, lwage s",
    "Wages1": "exper q, sex q, school q, wage s",
    "SLID": "wages s, education q, age q, sex q, language q",
    "birthwt": "low s, age q, lwt q, race q, smoke s, ptl s, ht s, ui s, ftv s, bwt s",
    "Melanoma": "time s, status s, sex q, age q, year q, thickness s, ulcer s",
    "Griliches": "rns q, rns80 q, mrt q, mrt80 q, smsa q, smsa80 q, med q, iq s, kww s, year q, age q, age80 q, "
    "school q, school80 q, expr q, expr80 q, tenure q, tenure80 q, lw s, lw80 s",
    "Pima.tr": "npreg s, glu s, bp s, skin s, bmi s, ped s, age q, type s",
    "kidney": "id i, time s, status s, age q, sex q, disease s, frail s",
    "cancer": "inst q, time s, status s, age q, sex q, ph.ecog s, ph.karno s, pat.karno s, meal.cal s, wt.loss s",
    "Mroz": "work q, hoursw s, child6 q, child618 q, agew q, educw q, hearnw s, wagew s, hoursh s, ageh q, educh q, "
    "wageh s, income s, educwm q, educwf q, unemprate q, city q, experience q",
    "Kakadu": "lower s, upper s, answer s, recparks s, jobs s, lowrisk s, wildlife s, future s, aboriginal s, "
    "finben s, mineparks s, moreparks s, gov s, envcon s, vparks s, tvenv s, conservation s, sex q, age q, "
    "schooling q, income s, major p",
    "affect": "Study p, Film p, ext s, neur s, imp s, soc s, lie s, traitanx s, state1 s, EA1 s, TA1 s, PA1 s, NA1 s, "
    "EA2 s, TA2 s, PA2 s, NA2 s, state2 s, MEQ s, BDI s",
}
APART = {
    "Benefits": "stateur q, statemb q, state q, age q, tenure q, joblost s, nwhite q, school12 q, sex q, bluecol q, "
    "smsa q, married q, dkids q, dykids q, yrdispl q, rr s, head q, ui s",
    "Aids2": "state q, sex q, diag s, death q, status s, T.categ s, age q",
    "respiratory": "center q, id i, treat s, sex q, age q, baseline s, visit p, outcome s",
    "nwtco": "seqno i, instit s, histol s, stage s, study p, rel s, edrel s, age q, in.subcohort p",
    "bioChemists": "art q, fem q, mar q, kid5 q, phd q, ment q",
    "Womenlf": "partic q, hincome s, children q, region q",
    "Vocab": "year q, sex q, education q, vocabulary s",
    "Cowles": "neuroticism s, extraversion s, sex q, volunteer s",
    "sat.act": "gender q, education q, age q, ACT s, SATV s, SATQ s",
    "Mathlevel": "mathlevel q, sat s, language q, sex q, major q, mathcourse q, physiccourse q, chemistcourse q",
    "stagec": "pgtime s, pgstat s, age q, eet s, g2 s, grade s, gleason s, ploidy s",
    "mgus": "id i, age q, sex q, dxyr q, pcdx s, pctime s, futime s, death s, alb s, creat s, hgb s, mspike s",
    "heart": "start s, stop s, event s, age q, year q, surgery s, transplant s, id i",
    "RetSchool": "wage76 s, grade76 q, exp76 q, black q, south76 q, smsa76 q, region q, smsa66 q, momdad14 q, "
    "sinmom14 q, nodaded q, nomomed q, daded q, momed q, famed q, age76 q, col4 q",
    "Somerville": "visits s, quality s, ski s, income s, feeSom s, costCon s, costSom s, costHoust s",
    "NaturalPark": "bid1 p, bidh p, bidl p, answers s, age q, sex q, income s",
    "Doctor": "doctor s, children q, access s, health s",
    "epi.bfi": "epiE s, epiS s, epiImp s, epilie s, epiNeur s, bfagree s, bfcon s, bfext s, bfneur s, bfopen s, "
    "bdi s, traitanx s, stateanx s",
}
ROLES = {"i": "identifier", "q": "quasi", "s": "sensitive", "p": "plain"}


def labels(text: str) -> dict[str, str]:
    """The role of each column, as it was written by hand."""
    pairs = (entry.rsplit(" ", 1) for entry in text.split(", "))
    return {column: ROLES[letter] for column, letter in pairs}


LABELLED = TRIED | APART
