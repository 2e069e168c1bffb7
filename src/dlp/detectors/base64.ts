import { withoutTrailing } from '../../lib/without-trailing.ts'

/** The value of padding, and of characters beyond both alphabets of base 64. */
export const PADDING = 64
export const NO_DIGIT = 65

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
/** The six bits of each ASCII character as a digit of base 64, in both alphabets (RFC 4648). */
export const SIX_BITS = new Uint8Array(128).fill(NO_DIGIT)
for (const [value, digit] of [...`${DIGITS}+/=`].entries()) SIX_BITS[digit.charCodeAt(0)] = value
SIX_BITS['-'.charCodeAt(0)] = 62
SIX_BITS['_'.charCodeAt(0)] = 63

/** Decodes base 64 of either alphabet to a string of bytes. @returns null if it is none */
export function decodeBase64(text: string): string | null {
  const digits = withoutTrailing(text.replace(/-/g, '+').replace(/_/g, '/'), '=')
  // Checked here, because an exception costs more than the decoding.
  if (digits.length % 4 === 1) return null
  try {
    return atob(digits)
  } catch {
    return null
  }
}
