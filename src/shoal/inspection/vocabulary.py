"""Words in column names: English, German, French, Italian, Spanish, Portuguese, some Dutch.

A hyphen stands for any letters. Names are read word by word, in lower case and without accents or digits:
``birthDate_Année`` is birth, date, annee. Abbreviations are those that public tables use.
"""

from __future__ import annotations

import re
from functools import cached_property


class WordList:
    """Words to look for, compiled when the first is: few runs ask for any of these lists."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(word.replace("-", r"\w*") for word in self._text.split()))

    def fullmatch(self, word: str) -> re.Match[str] | None:
        """Return the match if the list has the word."""
        return self._pattern.fullmatch(word)


# ── identifiers ─────────────────────────────────────────────────────────────────────────────────────────────

NAMED = WordList("""
    name names -name surname- forename- maiden nom prenom- cognome nome nombre apellido- sobrenome naam -naam
""")
REACHED = WordList("""
    email mail phone- telephone- telefo- tel mobile cell handy fax ssn passport- passeport passnummer iban
    account- konto username login user address- adress- indirizzo direccion endereco adres street strasse rue
    calle url ip mrn licen- plate kennzeichen codicefiscale nif dni nir bsn cpf
""")
KEYED = WordList("""
    id ids pid hid hhid uid -id idnr idno idcase caseid userid personid patientid subjectid recordid customerid
    clientid memberid studyid key uuid guid nr no num number -num -nummer nummer numero index rowid rownum
    rowname rownames record identifier seq seqno seqn serial caseno subjno intnum persnum obs
""")
PEOPLE = WordList("""
    patient- person- persnum subject- subj customer- client- employee- student- pupil- member- user-
    participant- respondent- proband- kunde- mitarbeiter- schuler- paziente- paciente- cliente- individu- case-
    nr pid -pid
""")
HOUSEHOLDS = WordList("""
    household- hhold hh hhid hid hhnr famid familyid famnr family haushalt- menage foyer famiglia familia hogar
    domicilio gezin
""")

# ── what others know ────────────────────────────────────────────────────────────────────────────────────────

WHEN = WordList("""
    age ages age[a-z]{1,3} (?:child|chld|mth|moth|mother|fath|father|mid|high|entry|stud|lect|mat|pat)age alter
    eta edad idade leeftijd date dates datum fecha data day tag year yr -yr yob jahr annee anno ano jaar month
    monat mois mese mes dob birth(?!place|pl|country|weight|wt)- born geburt(?!sort|sland)- geboren
    naissance nascita nacimiento nascimento geboorte-
    admission- entlassung
""")
PERSONAL = WordList("""
    sex gender geschlecht sexe sesso sexo genere genero geslacht female fem male man woman men women weiblich
    mannlich race racial ethn- etni- black blacks white whites -white hisp- latin- asian- aborigin- minority
    citizen- native immigra- foreign- nation- origin- herkunft auslander- staatsangehorigkeit nationalite marit-
    married maried mar mrt marr- single divorced widow- spouse familienstand civil zivilstand verheiratet marie
    stato estado casado coniug- child child- kids- kid -kids kinder enfants figli hijos filhos nsib- siblings
    hhsize famsize household- haushalt- menage nadults educ- school- yschool schul- bildung- edlevel edu college
    degree diploma universit- istruzione educa- formation onderwijs major job jobs occup- profession- beruf-
    work- employ- employed self industr- sector bluecol- trabajo lavoro metier emploi tenure exp exper- experience
    seniority rank discipline service dienstalter veteran farm- head language- sprache langue lingua idioma taal
    height tall groesse grosse taille statura altura hair eye eyes skin haar- augen-
""")
PLACES = WordList("""
    zip- postal- postcode postleitzahl plz cap cp cep city town townsize stadt ville citta ciudad cidade
    municip- gemeinde comune commune county state states stateur region- provinc- district- canton kanton bezirk
    quartier barrio country land pays paese pais urban rural smsa metro south- north- east west residence-
    wohnort domicil- neighbo- village dorf hospital clinic- klinik- hopital ospedale krankenhaus center centre
    site inst instit- ward station schid- schoolid provider provnum popul population tract- blockgroup blkgrp fips
    county- puma msa cbsa unemprate unemploymentrate lat latitude lon lng longitude -coord coord-
    easting northing birthplace
""")

COORDINATES = WordList("""
    lat latitude lon long lng longitude -coord -coords coord- easting northing gps geo utm breite lange laenge
    breitengrad langengrad longitud latitud latitudine longitudine
""")

# When somebody died is in registers and obituaries, whatever it was of.
DEATHS = WordList("death died deceased dod tod deces muerte morte obito")

# A colour, which others see; of numbers, a thickness.
SKIN = WordList("skin")

# What ends a time of observation.
EVENTS = WordList("event events status censor-")

# Marks, or years at school.
GRADES = WordList("grade grades highgrade")

# What stays the same in all records of one person.
STABLE = WordList("""
    sex gender geschlecht sexe sesso sexo genere genero geslacht female fem male race racial ethn- etni- black
    white -white hisp- dob birth(?!w)- born geburt- naissance nascita nacimiento nascimento geboorte- yob native
    nation- origin-
""")

# ── what nobody should learn ────────────────────────────────────────────────────────────────────────────────

HEALTH = WordList(r"""
    diseas- -disease diagnos- diag- illness- ill illdays condition- chcond symptom- krank- maladie- malatti-
    enfermedad- doenca- ziekte- icd medic- drug- therap- terapi- treat- trt rx arm dose dosage behandlung- hiv
    aids covid- disorder- disab- behinder- mental- depress- cancer- tumor- tumour- pregnan- npreg schwanger-
    genetic- genom- geno- gene snp rs apo- blood- blut- bmi health- hlth gesund- sante salute salud saude death-
    died dead dth todes- surviv- censor- event outcome relapse- recur- rel edrel remission stage histol- -type
    celltype cell node- lymph- lesion- rash itch- -pain pain- fever dysuria discharge vagin- infect- -infct
    surg- procedure- operation transplant- biops- admit- los dx -dx dx- doctor- docvis mdu \w+visit -visits pharvis
    hosp hospadmi hospdays hospvis emr prescr- nonpresc ecog karno- beck bili- chol- albumin copper platelet-
    protime trig- ast alt alk phos glu- insulin bp pressure systol- diastol- hemo- haemo- creatin- kappa lambda
    mgus serum plasma titer injur- actdays numchron physlim adl- symptom- ascites hepato spiders edema
    stroke- angina infarct- diabet- asthma- bweight birthweight bwt wt insur- -ins privins medicaid medicare hmo
    hhi whi coverage \w{2}time followup time tstart tstop status exam- abnormal- condom partner-
    npartner contracep- addict-
    alcohol- alc drink- smok- tobacco- cigar- rauch- fum- abuse- suicid-
    ulcer- thickness meal- calor- cal frail- hypert- prematur- preterm ped pedigree triceps skinfold ldl hdl
    trigly- hgb hb hematocrit wbc rbc crp psa pgtime pgstat eet gleason ploidy menopaus- meno hormon- pgr
    wheez- cough  copd fev fvc bmd sbp dbp pulse heartrate ecg ekg chf cvd metast- apache gcs sofa icu sepsis
    cd4 viral- creat alb  -spike vaccin- allerg- obes- nicotin- opioid- heroin cocaine cannabis
    marijuana overdose  gravid- parity abort- miscarr- contracept- fertil- sleep- insomn- fatigue- dement-
    seizure- epilep-  hospitali- comorbid- charlson remission- toxic- adverse- survive ptl ftv ui
""")
MONEY = WordList(r"""
    income- inc -inc -income incom- salar- wage- -wage -wages lnwg lwage lw earn- -earn- hearn- pay gehalt-
    einkommen- lohn- revenu- salaire- stipendio- reddit- ingreso- sueldo- salario- renda- cost costs -cost
    price- charge- kosten- preis- cout- costo costi coste custo- expen- \w+exp totexp- spend- amount- betrag-
    fee fees debt- loan- credit- kredit- mortgage- hypothek- owned ownhome homeown- rent balance- wealth- asset- gain
    loss tax- steuer- schuld- poverty poor welfare benefit- unemp(?!rate|loymentrate)- arbeitslos- chomage paro lunch-
    freelun- re husby budget-
""")
ANSWERS = WordList(r"""
    relig- glaube- konfession- church- polit- party partei prty- ideol- vote vote- voted votes union-
    gewerkschaft- crim- convict- offence- offense- arrest- prison- sexual- orientation affair- -affairs happ-
    satisf- zufried- opinion- attitud- trust answer- response- resp reply rate rating- score- -score -scr -scor
    iq sat[mqvw]? act gre gmat toefl test- -test math(?!level|course)\w* read- reading physics
    chemist(?!course)\w* grade- note punkte mark marks points statusquo
    news tvnews -lr hours[a-z]? hour hrs -hrs stunden stress anx- anger mood
    neur neurot- extraver- introver- -anx -anxiety trait- bdi meq phq- gad ces- stai panas epi- bfi-
    agree- conscien- openness (?:bf|neo|ffi|ipip)(?:agree|con|ext|neur|open)- conserv-
    impuls-  sociab- arous- affect- vocab- knowledge kww wks weeks -weeks volunteer- interest- confiden- prefer-
    aware- percei-  percept- ability reason- memory recall- reaction errors correct- accuracy simplicity
    fatalism esteem  personality- -scale subscale aggress- hostil- lonel- optimis- pessimis- empath-
    quality importan- difficult- lie
""")

# Words that speak of health only where they are the whole name: not baseline_age.
ALONE = WordList("baseline")

# Words that speak of health or answers only where no other word of the name says what it is about: marital status.
WEAK = WordList(
    "status time -type event exam- rate rating- test- act hours hour mark marks points note cell arm rel pay"
)

# Words that the sentence of a codebook has in passing: visits to a doctor in the last year, number of cigarettes a day.
IN_PASSING = WordList("""
    year years yr month months day days week weeks time times number no nr name person persons case item study
    jahr jahre monat tag tage anzahl annee annees mois jour jours nombre anno anni mese giorno giorni numero
    ano anos mes dia dias
""")

# ── what is neither ─────────────────────────────────────────────────────────────────────────────────────────

SAMPLING = WordList("""
    wght wgt weight weights -wgt -wght -weight fnlwgt finalwt gewicht hochrechnung- poids peso ponder- sampl-
    strat- psu cluster replicate-
""")
TECHNICAL = WordList("""
    wave visit round occasion panel item replicate rep trial- version file source study subcohort
""")

# Whether a word says anything at all.
ALL = (NAMED, REACHED, KEYED, HOUSEHOLDS, WHEN, PERSONAL, PLACES, HEALTH, MONEY, ANSWERS, SAMPLING, TECHNICAL)
