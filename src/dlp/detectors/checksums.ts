/** Check digits of strings of ASCII digits. */

const digitAt = (digits: string, index: number): number => digits.charCodeAt(index) - 48

/** The Luhn formula (ISO/IEC 7812-1, Annex B). */
export function luhn(digits: string): boolean {
  let sum = 0
  for (let index = 0; index < digits.length; index++) {
    const digit = digitAt(digits, digits.length - 1 - index)
    sum += index % 2 === 0 ? digit : digit > 4 ? digit * 2 - 9 : digit * 2
  }
  return sum % 10 === 0
}

/** Sum of the first digits, each times its weight. */
export function weightedSum(digits: string, weights: readonly number[]): number {
  let sum = 0
  for (let index = 0; index < weights.length; index++) sum += digitAt(digits, index) * (weights[index] ?? 0)
  return sum
}

/** The check digit of article numbers of 13 digits (EAN-13, GS1): weights 1 and 3. */
export const isArticleNumber = (digits: string): boolean =>
  weightedSum(digits, [1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1]) % 10 === 0

/** The remainder of a decimal number of any length. */
export function remainder(digits: string, divisor: number): number {
  let rest = 0
  for (let index = 0; index < digits.length; index++) rest = (rest * 10 + digitAt(digits, index)) % divisor
  return rest
}

/** Whether all characters are the same. */
export function isUniform(text: string): boolean {
  for (let index = 1; index < text.length; index++) if (text[index] !== text[0]) return false
  return true
}

/** Multiplication table of the dihedral group of order 10, which the Verhoeff scheme counts in. */
const DIHEDRAL = [
  '0123456789', '1234067895', '2340178956', '3401289567', '4012395678',
  '5987604321', '6598710432', '7659821043', '8765932104', '9876543210',
] // biome-ignore format: a table
const PERMUTATION = '1576283094'

/** The Verhoeff scheme (J. Verhoeff, 1969). */
export function verhoeff(digits: string): boolean {
  let check = 0
  for (let index = 0; index < digits.length; index++) {
    let digit = digitAt(digits, digits.length - 1 - index)
    for (let round = index % 8; round > 0; round--) digit = digitAt(PERMUTATION, digit)
    check = digitAt(DIHEDRAL[check] ?? '', digit)
  }
  return check === 0
}

/** ISO/IEC 7064, MOD 11,10. */
export function isoMod11And10(digits: string): boolean {
  let product = 10
  for (let index = 0; index < digits.length - 1; index++) {
    const sum = (digitAt(digits, index) + product) % 10 || 10
    product = (sum * 2) % 11
  }
  return (11 - product) % 10 === digitAt(digits, digits.length - 1)
}

/** The check digit of machine-readable travel documents (ICAO 9303-3, 4.9): weights 7, 3, 1; A = 10, `<` = 0. */
export function icaoCheckDigit(field: string): number {
  let sum = 0
  for (let index = 0; index < field.length; index++) {
    const code = field.charCodeAt(index)
    const value = code >= 65 && code <= 90 ? code - 55 : code >= 48 && code <= 57 ? code - 48 : 0
    sum += value * ([7, 3, 1][index % 3] ?? 0)
  }
  return sum % 10
}

/** Whether a date exists. Without a year, the 29th of February does. */
export function isDate(day: number, month: number, year = 2000): boolean {
  if (month < 1 || month > 12 || day < 1) return false
  return day <= new Date(Date.UTC(year, month, 0)).getUTCDate()
}

/** The number in part of a string. */
export const numberIn = (text: string, start: number, end: number): number => Number(text.slice(start, end))
