/**
 * Arithmetic of C's `long double` on x86 (64 bits of mantissa), which INCRBYFLOAT and HINCRBYFLOAT compute in. With
 * it 0.1 + 0.2 is 0.3 and 2^53 + 1 is exact, and what is not exact is off by the same digits as in Redis.
 */

/** mantissa * 2^exponent */
interface LongDouble {
  readonly mantissa: bigint
  readonly exponent: number
}

const MANTISSA_BITS = 64
/** Decimals that Redis prints. */
const DECIMALS = 17
/** Exponents beyond those of a double are refused; a long double goes further. */
const MAX_EXPONENT = 308

/**
 * Adds two decimal numbers.
 *
 * @param left digits with an optional sign, point and exponent
 * @returns the sum to 17 decimals, without exponent or trailing zeros; nothing if a number is too large
 */
export function addLongDoubles(left: string, right: string): string | undefined {
  const summands = [parse(left), parse(right)]
  const [first, second] = summands
  if (first === undefined || second === undefined) return undefined
  const exponent = Math.min(first.exponent, second.exponent)
  const sum = align(first, exponent) + align(second, exponent)
  return print(round(sum, 1n, exponent))
}

function align({ mantissa, exponent }: LongDouble, target: number): bigint {
  return mantissa << BigInt(exponent - target)
}

function parse(text: string): LongDouble | undefined {
  const [, sign, whole = '', fraction = '', power = '0'] =
    /^([+-]?)(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i.exec(text) ?? []
  if (Math.abs(Number(power)) > MAX_EXPONENT) return undefined
  const digits = BigInt(whole + fraction || '0') * (sign === '-' ? -1n : 1n)
  const shift = Number(power) - fraction.length
  return shift >= 0 ? round(digits * 10n ** BigInt(shift), 1n, 0) : round(digits, 10n ** BigInt(-shift), 0)
}

/** The long double nearest to numerator / denominator * 2^exponent. */
function round(numerator: bigint, denominator: bigint, exponent: number): LongDouble {
  if (numerator === 0n) return { mantissa: 0n, exponent: 0 }
  const size = numerator < 0n ? -numerator : numerator
  // The quotient then has 64 or 65 bits; 65 are brought to 64 by one more step.
  let shift = bitLength(size) - bitLength(denominator) - MANTISSA_BITS
  let mantissa = divide(size, denominator, shift)
  if (bitLength(mantissa) > MANTISSA_BITS) mantissa = divide(size, denominator, ++shift)
  return { mantissa: numerator < 0n ? -mantissa : mantissa, exponent: exponent + shift }
}

/** numerator / denominator / 2^shift, to the nearest integer, ties to the even one. */
function divide(numerator: bigint, denominator: bigint, shift: number): bigint {
  const dividend = shift < 0 ? numerator << BigInt(-shift) : numerator
  const divisor = shift > 0 ? denominator << BigInt(shift) : denominator
  const quotient = dividend / divisor
  const twice = (dividend - quotient * divisor) * 2n
  const isUp = twice > divisor || (twice === divisor && quotient % 2n === 1n)
  return isUp ? quotient + 1n : quotient
}

function print({ mantissa, exponent }: LongDouble): string {
  const size = mantissa < 0n ? -mantissa : mantissa
  const digits = divide(size * 10n ** BigInt(DECIMALS), 1n, -exponent)
    .toString()
    .padStart(DECIMALS + 1, '0')
  const fraction = digits.slice(-DECIMALS).replace(/0+$/, '')
  const whole = digits.slice(0, -DECIMALS)
  const text = fraction === '' ? whole : `${whole}.${fraction}`
  return mantissa < 0n && text !== '0' ? `-${text}` : text
}

function bitLength(value: bigint): number {
  return value.toString(2).length
}
