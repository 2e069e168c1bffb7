/** An import or re-export of a TypeScript source. */
export interface SourceImport {
  specifier: string
  /** Starts at 1. */
  line: number
  /** Whether it is gone after compilation: `import type`, or nothing but `type` members. */
  typeOnly: boolean
  /** Whether it is written `export … from`. */
  reexport: boolean
  /** Names between `import` and `from` as they are written; empty for the other forms. */
  clause: string
}

/**
 * Blanks out comments and the contents of strings, templates and regular expressions, so that a search finds code only.
 * Every character keeps its place, and quotes stay.
 */
export function maskSource(text: string): string {
  const masked = text.split('')
  const blank = (from: number, to: number): void => {
    for (let index = from; index < to; index += 1) if (masked[index] !== '\n') masked[index] = ' '
  }
  let index = 0
  /** Depth of braces at which each open `${` ends. */
  const templates: number[] = []
  let depth = 0
  while (index < text.length) {
    const character = text[index] ?? ''
    const end = endOfComment(text, index)
    if (end > index) {
      blank(index, end)
      index = end
    } else if (character === "'" || character === '"') {
      const close = endOfString(text, index, character)
      blank(index + 1, close)
      index = close + 1
    } else if (character === '`' || (character === '}' && templates.at(-1) === depth)) {
      if (character === '}') templates.pop()
      const close = endOfTemplatePart(text, index + 1)
      blank(index + 1, close.at)
      if (close.opensCode) templates.push(depth)
      index = close.next
    } else if (character === '/' && startsRegularExpression(masked, index)) {
      const close = endOfRegularExpression(text, index)
      blank(index + 1, close)
      index = close + 1
    } else {
      if (character === '{') depth += 1
      if (character === '}') depth -= 1
      index += 1
    }
  }
  return masked.join('')
}

const CLAUSE = String.raw`(?:[\w$]+\s*,?\s*)?(?:\{[^}]*\}|\*(?:\s*as\s+[\w$]+)?)?`
const IMPORT_FORMS = [
  new RegExp(String.raw`\b(import|export)(\s+type\b)?(\s*${CLAUSE})\s*\bfrom\s*['"]`, 'g'),
  /\b(import)()()\s*['"]/g,
  /\b(import)()()\s*\(\s*['"]/g,
]

/** Every import, re-export and `import()` with a literal path. @param masked the same text from `maskSource` */
export function importsOf(text: string, masked = maskSource(text)): SourceImport[] {
  const found: SourceImport[] = []
  for (const form of IMPORT_FORMS) {
    for (const match of masked.matchAll(form)) {
      const start = match.index + match[0].length
      const specifier = text.slice(start, text.indexOf(text[start - 1] ?? '', start))
      const [, keyword, type, clause = ''] = match
      found.push({
        specifier,
        line: lineAt(text, match.index),
        typeOnly: type !== undefined && type !== '' ? true : namesTypesOnly(clause),
        reexport: keyword === 'export',
        clause: clause.trim(),
      })
    }
  }
  return found.sort((left, right) => left.line - right.line)
}

/** Number of the line that holds a position, from 1. */
export function lineAt(text: string, position: number): number {
  return text.slice(0, position).split('\n').length
}

function namesTypesOnly(clause: string): boolean {
  const names = /^\s*\{([^}]*)\}\s*$/.exec(clause)?.[1]?.split(',')
  const written = names?.map((name) => name.trim()).filter((name) => name !== '') ?? []
  return written.length > 0 && written.every((name) => name.startsWith('type '))
}

function endOfComment(text: string, start: number): number {
  if (text.startsWith('//', start)) {
    const end = text.indexOf('\n', start)
    return end < 0 ? text.length : end
  }
  if (!text.startsWith('/*', start)) return start
  const end = text.indexOf('*/', start + 2)
  return end < 0 ? text.length : end + 2
}

function endOfString(text: string, start: number, quote: string): number {
  let index = start + 1
  while (index < text.length && text[index] !== quote && text[index] !== '\n') {
    index += text[index] === '\\' ? 2 : 1
  }
  return Math.min(index, text.length)
}

function endOfTemplatePart(text: string, start: number): { at: number; next: number; opensCode: boolean } {
  let index = start
  while (index < text.length) {
    if (text[index] === '`') return { at: index, next: index + 1, opensCode: false }
    if (text.startsWith('${', index)) return { at: index, next: index + 2, opensCode: true }
    index += text[index] === '\\' ? 2 : 1
  }
  return { at: text.length, next: text.length, opensCode: false }
}

/** A slash divides after a value and begins a regular expression after anything else. */
function startsRegularExpression(masked: string[], slash: number): boolean {
  let index = slash - 1
  while (index >= 0 && /\s/.test(masked[index] ?? '')) index -= 1
  if (index < 0) return true
  const before = masked.slice(Math.max(0, index - 10), index + 1).join('')
  if (/\b(return|typeof|case|in|of|do|else|void|delete|await|yield)$/.test(before)) return true
  return !/[\w$)\]}'"`]$/.test(before)
}

function endOfRegularExpression(text: string, start: number): number {
  let inClass = false
  let index = start + 1
  while (index < text.length && text[index] !== '\n') {
    const character = text[index]
    if (character === '/' && !inClass) return index
    if (character === '[') inClass = true
    if (character === ']') inClass = false
    index += character === '\\' ? 2 : 1
  }
  return Math.min(index, text.length)
}
