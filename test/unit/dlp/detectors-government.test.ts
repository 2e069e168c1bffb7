import { describe, expect, it } from 'vitest'
import { EVERYTHING, found, profileOf } from './finding.ts'

/** Sample numbers that authorities and encyclopedias publish; with the words that name them. */
const NAMED: readonly (readonly [detector: string, words: string, number: string])[] = [
  ['us_ssn', 'SSN', '078-05-1120'],
  ['us_ssn', 'social security number', '078051120'],
  ['us_itin', 'ITIN', '912-70-1234'],
  ['ca_sin', 'SIN', '046 454 286'],
  ['mx_curp', 'CURP', 'HEGG560427MVZRRL04'],
  ['br_cpf', 'CPF', '529.982.247-25'],
  ['br_cpf', 'CPF', '52998224725'],
  ['br_cnpj', 'CNPJ', '11.222.333/0001-81'],
  ['br_cnpj', 'CNPJ', '12.ABC.345/01DE-35'],
  ['cl_rut', 'RUT', '12.345.678-5'],
  ['ar_cuit', 'CUIT', '20-12345678-6'],
  ['gb_nino', 'National Insurance number', 'AB 12 34 56 C'],
  ['gb_nino', 'NI number', 'QQ123456C'],
  ['gb_nhs', 'NHS number', '943 476 5919'],
  ['gb_nhs', 'NHS', '9434765919'],
  ['de_tax_id', 'Steuer-ID', '86095742719'],
  ['de_tax_id', 'IdNr.', '47 036 892 816'],
  ['de_id_card', 'Personalausweis', 'T220001293'],
  ['de_id_card', 'Ausweisnummer', 'L01X00T471'],
  ['fr_nir', 'numéro de sécurité sociale', '2 55 08 14 168 025 38'],
  ['fr_nir', 'NIR', '255081416802538'],
  ['it_codice_fiscale', 'codice fiscale', 'RSSMRA85T10A562S'],
  ['es_dni', 'DNI', '12345678Z'],
  ['es_dni', 'DNI', '12.345.678-Z'],
  ['es_nie', 'NIE', 'X1234567L'],
  ['nl_bsn', 'BSN', '111222333'],
  ['pt_nif', 'NIF', '123456789'],
  ['be_national_number', 'rijksregisternummer', '85.07.30-033.28'],
  ['ch_ahv', 'AHV-Nr.', '756.9217.0769.85'],
  ['at_svnr', 'SVNR', '1237 010180'],
  ['ie_pps', 'PPS number', '1234567T'],
  ['pl_pesel', 'PESEL', '44051401359'],
  ['se_personnummer', 'personnummer', '811228-9874'],
  ['se_personnummer', 'personnummer', '19811228-9874'],
  ['dk_cpr', 'CPR-nr.', '070761-4285'],
  ['no_fodselsnummer', 'fødselsnummer', '29029600013'],
  ['fi_hetu', 'henkilötunnus', '131052-308T'],
  ['cz_rodne_cislo', 'rodné číslo', '710319/2745'],
  ['ro_cnp', 'CNP', '1630615123457'],
  ['tr_identity_number', 'TC kimlik no', '10000000146'],
  ['ru_snils', 'СНИЛС', '112-233-445 95'],
  ['za_id', 'ID number', '8001015009087'],
  ['in_aadhaar', 'Aadhaar', '2341 2341 2346'],
  ['in_pan', 'PAN card', 'ABCPE1234F'],
  ['cn_resident_id', '身份证', '11010519491231002X'],
  ['jp_my_number', 'マイナンバー', '1234 5678 9018'],
  ['kr_rrn', '주민등록번호', '880101-1234567'],
  ['au_tfn', 'TFN', '123 456 782'],
  ['au_medicare', 'Medicare', '2123 45670 1'],
  ['sg_nric', 'NRIC', 'S1234567D'],
  ['hk_id', 'HKID', 'A123456(3)'],
  ['tw_id', '身分證字號', 'A123456789'],
  ['th_id', 'Thai ID', '1-1111-11111-11-9'],
  ['il_id', 'Israeli ID', '123456782'],
  ['passport_number', 'passport', '123456789'],
  ['passport_number', 'Reisepass', 'C01X00T47'],
  ['passport_number', 'passeport', '12AB34567'],
]

/** Ids with one wrong character. */
const BROKEN: readonly (readonly [detector: string, text: string])[] = [
  ['us_ssn', 'SSN 666-05-1120'],
  ['us_ssn', 'SSN 078-00-1120'],
  ['us_ssn', 'SSN 900-05-1120'],
  ['us_itin', 'ITIN 912-66-1234'],
  ['ca_sin', 'SIN 046 454 287'],
  ['mx_curp', 'CURP HEGG560427MVZRRL05'],
  ['br_cpf', 'CPF 529.982.247-26'],
  ['br_cpf', 'CPF 111.111.111-11'],
  ['br_cnpj', 'CNPJ 11.222.333/0001-82'],
  ['cl_rut', 'RUT 12.345.678-6'],
  ['ar_cuit', 'CUIT 20-12345678-7'],
  ['gb_nino', 'NI number BG123456C'],
  ['gb_nino', 'NI number AB123456E'],
  ['gb_nhs', 'NHS 943 476 5918'],
  ['de_tax_id', 'Steuer-ID 86095742718'],
  ['de_tax_id', 'Steuer-ID 12345678903'],
  ['de_id_card', 'Personalausweis T220001294'],
  ['fr_nir', 'NIR 2 55 08 14 168 025 39'],
  ['it_codice_fiscale', 'codice fiscale RSSMRA85T10A562T'],
  ['es_dni', 'DNI 12345678A'],
  ['es_nie', 'NIE X1234567A'],
  ['nl_bsn', 'BSN 111222334'],
  ['pt_nif', 'NIF 123456788'],
  ['be_national_number', '85.07.30-033.29'],
  ['ch_ahv', '756.9217.0769.86'],
  ['at_svnr', 'SVNR 1238 010180'],
  ['ie_pps', 'PPS 1234567A'],
  ['pl_pesel', 'PESEL 44051401358'],
  ['se_personnummer', 'personnummer 811228-9873'],
  ['dk_cpr', 'CPR 320761-4285'],
  ['no_fodselsnummer', 'fødselsnummer 29029600014'],
  ['fi_hetu', '131052-308U'],
  ['cz_rodne_cislo', '710319/2746'],
  ['ro_cnp', 'CNP 1630615123458'],
  ['tr_identity_number', 'kimlik 10000000147'],
  ['ru_snils', 'СНИЛС 112-233-445 96'],
  ['za_id', 'ID number 8001015009088'],
  ['in_aadhaar', 'Aadhaar 2341 2341 2347'],
  ['in_pan', 'PAN ABCZE1234F'],
  ['cn_resident_id', '身份证 110105194912310021'],
  ['jp_my_number', 'マイナンバー 1234 5678 9019'],
  ['kr_rrn', '881301-1234567'],
  ['au_tfn', 'TFN 123 456 783'],
  ['au_medicare', 'Medicare 2123 45671 1'],
  ['sg_nric', 'NRIC S1234567E'],
  ['hk_id', 'HKID A123456(4)'],
  ['tw_id', '身分證字號 A123456788'],
  ['th_id', '1-1111-11111-11-8'],
  ['il_id', 'Israeli ID 123456783'],
  ['passport_number', 'boarding pass 123456789'],
]

describe('identity numbers', () => {
  it.each(NAMED)('%s: %s %s', (detector, words, number) => {
    expect(found(`My ${words}: ${number}.`, profileOf([detector]))).toEqual([`${detector}: ${number}`])
  })

  it.each(BROKEN)('%s is not %s', (detector, text) => {
    expect(found(text, profileOf([detector]))).toEqual([])
  })

  it.each(['aba_routing', 'nl_bsn', 'pt_nif', 'il_id', 'passport_number'])('%s needs a word', (detector) => {
    expect(found('The count was 111222333, later 123456782 and 021000021.', profileOf([detector]))).toEqual(
      [],
    )
  })

  it('takes the number for what was named last', () => {
    expect(found('SSN on file. The routing number is 021000021.')).toEqual(['aba_routing: 021000021'])
  })
})

describe('machine-readable lines', () => {
  // The specimen of ICAO 9303-4 and -5.
  const passport = [
    'P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<',
    'L898902C36UTO7408122F1204159ZE184226B<<<<<10',
  ]
  const card = [
    'I<UTOD231458907<<<<<<<<<<<<<<<',
    '7408122F1204159UTO<<<<<<<<<<<6',
    'ERIKSSON<<ANNA<MARIA<<<<<<<<<<',
  ]

  it.each([...passport, ...card])('%s', (line) => {
    expect(found(`scan:\n${line}\n`, profileOf(['passport_mrz']))).toEqual([`passport_mrz: ${line}`])
  })

  it('not with a wrong check digit, nor other text with brackets', () => {
    const wrong = 'L898902C37UTO7408122F1204159ZE184226B<<<<<10'
    expect(found(wrong, profileOf(['passport_mrz']))).toEqual([])
    expect(found('A<<B<<C << 2', EVERYTHING)).toEqual([])
  })
})
