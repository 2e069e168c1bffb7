/**
 * Kinds of pieces by their script. Tokenizers of other families differ from o200k_base mostly in the tokens for each
 * script, so their counts are estimated by kind (model-families.ts).
 */
export const PIECE_KINDS = [
  'word',
  'digits',
  'punctuation',
  'spaces',
  'foreignWord',
  'latin',
  'vietnamese',
  'greek',
  'cyrillic',
  'hebrew',
  'arabic',
  'devanagari',
  'indic',
  'thai',
  'kana',
  'han',
  'hangul',
  'symbols',
  'rare',
] as const

export type PieceKind = (typeof PIECE_KINDS)[number]

export const KIND = Object.fromEntries(PIECE_KINDS.map((kind, index) => [kind, index])) as Record<
  PieceKind,
  number
>

/** First bytes of UTF-8 characters up to the given one, and the script that they are in. */
const LEADS: ReadonlyArray<[number, PieceKind]> = [
  [0xcc, 'latin'],
  [0xcf, 'greek'],
  [0xd3, 'cyrillic'],
  [0xd5, 'rare'],
  [0xd7, 'hebrew'],
  [0xdb, 'arabic'],
  [0xdf, 'rare'],
  [0xe0, 'indic'],
  [0xe1, 'rare'],
  [0xe2, 'symbols'],
  [0xe9, 'han'],
  [0xed, 'hangul'],
  [0xff, 'symbols'],
]

const kindOfLead = Uint8Array.from({ length: 256 }, (_, byte) => {
  const [, kind] = LEADS.find(([last]) => byte <= last) ?? [0, 'symbols' as const]
  return KIND[kind]
})

/** @returns the kind of the piece of UTF-8 text, as a place in `PIECE_KINDS`; never `foreignWord`. */
export function kindOfPiece(bytes: Uint8Array, start: number, end: number): number {
  let lead = 0
  let second = 0
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number
    if (byte <= lead || byte < 0xc2) continue
    lead = byte
    second = at + 1 < end ? (bytes[at + 1] as number) : 0
    // A piece with any kana counts as kana.
    if (byte === 0xe3 && second >= 0x81 && second <= 0x83) return KIND.kana
  }
  if (lead === 0) return kindOfAscii(bytes[end - 1] as number, bytes[start] as number)
  return kindOfLeadPair(lead, second)
}

/** First bytes that several scripts share. */
function kindOfLeadPair(lead: number, second: number): number {
  if (lead === 0xe0 && second <= 0xa5) return KIND.devanagari
  if (lead === 0xe0 && second >= 0xb8 && second <= 0xbb) return KIND.thai
  if (lead === 0xe1 && second >= 0xb8 && second <= 0xbb) return KIND.vietnamese
  if (lead === 0xe3 && second === 0x80) return KIND.symbols
  return kindOfLead[lead] as number
}

function kindOfAscii(last: number, first: number): number {
  if (last >= 0x30 && last <= 0x39) return KIND.digits
  if ((last | 0x20) >= 0x61 && (last | 0x20) <= 0x7a) return KIND.word
  return last <= 0x20 && first <= 0x20 ? KIND.spaces : KIND.punctuation
}
