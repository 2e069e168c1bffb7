/** Names of the characters from U+00A0 to U+00FF, in order (https://html.spec.whatwg.org/multipage/named-characters.html). */
const LATIN_1 =
  'nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml'
/** Greek letters: U+0391 to U+03C9 with a gap for each place that has no name. */
const GREEK =
  'Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho - Sigma Tau Upsilon Phi Chi Psi Omega - - - - - - - alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigmaf sigma tau upsilon phi chi psi omega'
/** Others that pages use. */
const OTHERS: Record<string, string> = {
  ...{ amp: '&', AMP: '&', lt: '<', LT: '<', gt: '>', GT: '>', quot: '"', QUOT: '"', apos: "'" },
  ...{
    OElig: 'Œ',
    oelig: 'œ',
    Scaron: 'Š',
    scaron: 'š',
    Zcaron: 'Ž',
    zcaron: 'ž',
    Ccaron: 'Č',
    ccaron: 'č',
    Yuml: 'Ÿ',
  },
  ...{
    fnof: 'ƒ',
    circ: 'ˆ',
    tilde: '˜',
    ensp: ' ',
    emsp: ' ',
    thinsp: ' ',
    hairsp: ' ',
    numsp: ' ',
    puncsp: ' ',
  },
  ...{
    zwnj: '\u200c',
    zwj: '\u200d',
    lrm: '\u200e',
    rlm: '\u200f',
    hyphen: '‐',
    ndash: '–',
    mdash: '—',
    horbar: '―',
  },
  ...{
    lsquo: '‘',
    rsquo: '’',
    sbquo: '‚',
    ldquo: '“',
    rdquo: '”',
    bdquo: '„',
    dagger: '†',
    Dagger: '‡',
    bull: '•',
  },
  ...{
    hellip: '…',
    permil: '‰',
    prime: '′',
    Prime: '″',
    lsaquo: '‹',
    rsaquo: '›',
    oline: '‾',
    frasl: '⁄',
    euro: '€',
  },
  ...{
    image: 'ℑ',
    weierp: '℘',
    real: 'ℜ',
    trade: '™',
    alefsym: 'ℵ',
    larr: '←',
    uarr: '↑',
    rarr: '→',
    darr: '↓',
    harr: '↔',
  },
  ...{
    lArr: '⇐',
    uArr: '⇑',
    rArr: '⇒',
    dArr: '⇓',
    hArr: '⇔',
    forall: '∀',
    part: '∂',
    exist: '∃',
    empty: '∅',
    nabla: '∇',
  },
  ...{
    isin: '∈',
    notin: '∉',
    ni: '∋',
    prod: '∏',
    sum: '∑',
    minus: '−',
    lowast: '∗',
    radic: '√',
    prop: '∝',
    infin: '∞',
  },
  ...{
    ang: '∠',
    and: '∧',
    or: '∨',
    cap: '∩',
    cup: '∪',
    int: '∫',
    there4: '∴',
    sim: '∼',
    cong: '≅',
    asymp: '≈',
    ne: '≠',
  },
  ...{
    equiv: '≡',
    le: '≤',
    ge: '≥',
    sub: '⊂',
    sup: '⊃',
    nsub: '⊄',
    sube: '⊆',
    supe: '⊇',
    oplus: '⊕',
    otimes: '⊗',
  },
  ...{
    perp: '⊥',
    sdot: '⋅',
    lceil: '⌈',
    rceil: '⌉',
    lfloor: '⌊',
    rfloor: '⌋',
    lang: '⟨',
    rang: '⟩',
    loz: '◊',
  },
  ...{
    spades: '♠',
    clubs: '♣',
    hearts: '♥',
    diams: '♦',
    check: '✓',
    checkmark: '✓',
    cross: '✗',
    star: '☆',
    starf: '★',
  },
  ...{
    Tab: '\t',
    NewLine: '\n',
    excl: '!',
    num: '#',
    dollar: '$',
    percnt: '%',
    lpar: '(',
    rpar: ')',
    ast: '*',
    plus: '+',
  },
  ...{
    comma: ',',
    period: '.',
    sol: '/',
    colon: ':',
    semi: ';',
    equals: '=',
    quest: '?',
    commat: '@',
    lsqb: '[',
    rsqb: ']',
  },
  ...{
    bsol: '\\',
    Hat: '^',
    lowbar: '_',
    grave: '`',
    lcub: '{',
    verbar: '|',
    vert: '|',
    rcub: '}',
    lbrack: '[',
    rbrack: ']',
  },
}

const NAMED = new Map<string, string>([
  ...LATIN_1.split(' ').map((name, index) => [name, String.fromCharCode(0xa0 + index)] as const),
  ...GREEK.split(' ').map((name, index) => [name, String.fromCharCode(0x391 + index)] as const),
  ...Object.entries(OTHERS),
])

/** Pages write these numbers of Windows-1252 for characters of 0x80 to 0x9f. */
const WINDOWS_1252 = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ'

const REFERENCE = /&(?:#([0-9]{1,10})|#[xX]([0-9a-fA-F]{1,8})|([A-Za-z][A-Za-z0-9]{1,30}(?=;)));?/g

/** Decodes character references. Names need their semicolon, since queries of
 * addresses have others (`?a=1&copy=2`); names that are not known here stay as they are. */
export const decodeEntities = (text: string): string =>
  text.includes('&')
    ? text.replace(REFERENCE, (whole: string, decimal?: string, hexadecimal?: string, name?: string) => {
        if (name !== undefined) return NAMED.get(name) ?? whole
        return character(decimal !== undefined ? Number(decimal) : Number.parseInt(hexadecimal ?? '', 16))
      })
    : text

function character(code: number): string {
  if (code >= 0x80 && code <= 0x9f) return WINDOWS_1252[code - 0x80] ?? '\ufffd'
  const valid = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)
  return valid ? String.fromCodePoint(code) : '\ufffd'
}
