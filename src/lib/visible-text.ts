/**
 * Characters without a visible form, in which text for models only can be hidden: controls, bidirectional marks, zero-width
 * characters, fillers, variation selectors beyond those of emoji, and Unicode tags.
 */
const INVISIBLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is removed
  /\u034f|[\u180b-\u180f]|[\ufe00-\ufe0d]|[\u{e0000}-\u{e0fff}]|[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{1d173}-\u{1d17a}]/gu

/** Joiners are part of words in some scripts, and of emoji; elsewhere they are invisible. So are repeated emoji selectors. */
const STRAY_JOINER =
  /(?<!\ufe0f|[\p{M}\p{Script=Arabic}\p{Script=Mongolian}\p{Extended_Pictographic}\p{Emoji_Modifier}])[\u200c\u200d]|[\u200c\u200d](?![\p{L}\p{Extended_Pictographic}])/gu
const REPEATED_SELECTOR = /([\ufe0e\ufe0f])[\ufe0e\ufe0f]+/g

const PLAIN = /^[\n -~]*$/

/** A text as a person sees it: without characters that have no visible form. */
export function visibleText(text: string): string {
  if (PLAIN.test(text)) return text
  return text
    .replace(INVISIBLE, '')
    .replace(STRAY_JOINER, '')
    .replace(REPEATED_SELECTOR, '$1')
    .replace(/\r\n?/g, '\n')
}
