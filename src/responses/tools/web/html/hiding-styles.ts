/** Whether the value of a property, in lower case and without white space around it, hides the text of its element. */
const HIDING: Readonly<Record<string, (value: string) => boolean>> = {
  display: (value) => value === 'none',
  visibility: (value) => value === 'hidden' || value === 'collapse',
  'content-visibility': (value) => value === 'hidden',
  color: (value) => value === 'transparent',
  opacity: isZero,
  'font-size': (value) => isZero(value) || (/^[\d.]+p[xt]$/.test(value) && Number.parseFloat(value) < 2),
  width: isZero,
  height: isZero,
  'max-width': isZero,
  'max-height': isZero,
  left: isFarOutside,
  top: isFarOutside,
  right: isFarOutside,
  bottom: isFarOutside,
  'margin-left': isFarOutside,
  'text-indent': (value) => value.startsWith('-') && Number.parseFloat(value) <= -100,
  // An area without a size, or of a pixel.
  clip: (value) => value.startsWith('rect(') && /^[01](?:px)?(?:[\s,]|$)/.test(value.slice(5).trimStart()),
  'clip-path': (value) => value.startsWith('inset(') && /^(?:50|100)%/.test(value.slice(6).trimStart()),
  transform: (value) => value.startsWith('scale(') && /^0(?:[\s,)]|$)/.test(value.slice(6).trimStart()),
}

/**
 * Whether text with the `style` of its element is in a page and not on a screen. The work grows with the length of the
 * style only.
 */
export function hidesText(style: string): boolean {
  // Escapes and comments would hide a property, and have no other use in an attribute.
  if (style.includes('\\') || style.includes('/*')) return true
  return style
    .toLowerCase()
    .split(';')
    .some((declaration) => {
      const colon = declaration.indexOf(':')
      const name = declaration.slice(0, Math.max(0, colon)).trim()
      if (!Object.hasOwn(HIDING, name)) return false
      return HIDING[name]?.(withoutPriority(declaration.slice(colon + 1)))
    })
}

/** Removes `!important`. */
function withoutPriority(value: string): string {
  const mark = value.indexOf('!')
  return (mark < 0 ? value : value.slice(0, mark)).trim()
}

/** A zero, whatever its unit is. */
function isZero(value: string): boolean {
  return /^[+-]?[\d.]+(?:e[+-]?\d+)?[a-z%]*$/.test(value) && Number.parseFloat(value) === 0
}

/** A thousand units or more before the beginning of its axis. */
function isFarOutside(value: string): boolean {
  return value.startsWith('-') && Number.parseFloat(value) <= -1_000
}
