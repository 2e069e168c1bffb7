import { LabelledText, type Sample, type Writing } from './labelled-text.ts'
import type { LookAlike } from './look-alikes.ts'
import type { SeededRandom } from './seeded-random.ts'
import { NAMED_AFTER, PHRASES, UNNAMED } from './sentences.ts'
import type { Language, SensitiveValue } from './values.ts'

/** The kinds of text that contain values: letters, chats, rows, tickets, programs and logs. */

export type Item = { sensitive: SensitiveValue } | { innocent: LookAlike }

type Setting = (random: SeededRandom, items: readonly Item[], language: Language) => Sample

/** Share of values without a name, among those that need none. */
const UNNAMED_SHARE = 0.25

const inString: Writing = (text) => JSON.stringify(text).slice(1, -1)

function nameOf(random: SeededRandom, item: Item, language: Language): string {
  if ('innocent' in item) return item.innocent.name
  return random.pick(item.sensitive.names[language] ?? item.sensitive.names.en)
}

/** The language of the words around a value: the given one where the value has a name in it, else English. */
function spokenIn(item: Item, language: Language): Language {
  return 'innocent' in item || item.sensitive.names[language] === undefined ? 'en' : language
}

function keyOf(random: SeededRandom, item: Item): string {
  return 'innocent' in item ? item.innocent.key : random.pick(item.sensitive.keys)
}

function addItem(text: LabelledText, item: Item, writing?: Writing): void {
  if ('sensitive' in item) text.value(item.sensitive, writing)
  else text.add(writing ? writing(item.innocent.text) : item.innocent.text)
}

function addSentence(text: LabelledText, random: SeededRandom, item: Item, language: Language): void {
  const spoken = spokenIn(item, language)
  const unnamed = 'sensitive' in item && !item.sensitive.needsName && random.chance(UNNAMED_SHARE)
  const after = spoken === 'en' && !('sensitive' in item && item.sensitive.needsName)
  const named = [...PHRASES[spoken].named, ...(after ? NAMED_AFTER : [])]
  const sentence = random.pick(unnamed ? UNNAMED : named)
  if ('sensitive' in item) text.sentence(sentence, nameOf(random, item, spoken), item.sensitive)
  else text.add(sentence.replace('{name}', item.innocent.name).replace('{value}', () => item.innocent.text))
}

const mail: Setting = (random, items, language) => {
  const { greetings, fillers, closings } = PHRASES[language]
  const text = new LabelledText().add(`${random.pick(greetings)}\n\n`)
  for (const item of items) {
    text.add(`${random.pick(fillers)} `)
    addSentence(text, random, item, language)
    text.add(` ${random.pick(fillers)}\n\n`)
  }
  return text.add(random.pick(closings)).sample('mail')
}

const chat: Setting = (random, items, language) => {
  const text = new LabelledText()
  for (const item of items) {
    text.add(
      `[0${random.integer(7, 9)}:${random.padded(10, 59, 2)}] Lea: ${random.pick(PHRASES[language].fillers)}\n`,
    )
    text.add(`[09:${random.padded(10, 59, 2)}] Sam: `)
    addSentence(text, random, item, language)
    text.add('\n')
  }
  return text.add('Lea: ok').sample('chat')
}

const ticket: Setting = (random, items, language) => {
  const text = new LabelledText().add(`Ticket OPS-${random.integer(100, 9_999)}\nPriority: high\n`)
  for (const item of items) {
    text.add(`${nameOf(random, item, language)}: `)
    addItem(text, item)
    text.add('\n')
  }
  return text.add(`Description: ${random.pick(PHRASES[language].fillers)}`).sample('ticket')
}

const jsonRow: Setting = (random, items, language) => {
  const gap = random.pick(['', ' '])
  const text = new LabelledText().add(`{"id":${gap}${random.integer(1, 9_999)},`)
  for (const item of items) {
    text.add(`${gap}"${keyOf(random, item)}":${gap}"`)
    addItem(text, item, inString)
    text.add('",')
  }
  return text.add(`${gap}"note":${gap}"${inString(random.pick(PHRASES[language].fillers))}"}`).sample('json')
}

const csvRows: Setting = (random, items) => {
  const separator = random.pick([',', ';', '\t'])
  const quoted: Writing = (cell) => (/[",;\t\n]/.test(cell) ? `"${cell.replace(/"/g, '""')}"` : cell)
  const text = new LabelledText()
  text.add(['id', ...items.map((item) => keyOf(random, item)), 'status'].join(separator))
  text.add(`\n${random.integer(1, 999)}`)
  for (const item of items) {
    text.add(separator)
    addItem(text, item, quoted)
  }
  return text.add(`${separator}active\n`).sample('csv')
}

const program: Setting = (random, items) => {
  const style = random.pick(['script', 'environment', 'yaml'] as const)
  const text = new LabelledText()
  if (style === 'script') text.add("import { connect } from './client.js'\n\n")
  for (const item of items) {
    const key = keyOf(random, item)
    if (style === 'script') text.add(`const ${key} = "`)
    else text.add(style === 'yaml' ? `  ${key}: "` : `${key.toUpperCase()}="`)
    addItem(text, item, inString)
    text.add(style === 'script' ? '"\n' : '"\n')
  }
  if (style === 'script') text.add('\nexport const retries = 3\n')
  return text.sample('code')
}

const log: Setting = (random, items) => {
  const text = new LabelledText()
  for (const item of items) {
    text.add(
      `2024-05-${random.padded(1, 28, 2)}T0${random.integer(1, 9)}:${random.padded(0, 59, 2)}:07.${random.digits(3)}Z `,
    )
    text.add(
      `${random.pick(['INFO', 'WARN', 'DEBUG'])} [worker-${random.integer(1, 8)}] ${keyOf(random, item)}=`,
    )
    addItem(text, item)
    text.add(` duration=${random.integer(1, 900)}ms\n`)
  }
  return text.sample('log')
}

/** Types whose values people put into names of files. */
const IN_FILE_NAMES: readonly string[] = [
  'card', 'iban', 'bic', 'us_routing', 'us_ssn', 'us_itin', 'phone', 'email', 'passport', 'national_id',
] // biome-ignore format: a list

/** A list of files, with values in their names. */
const files: Setting = (random, items, language) => {
  const fits = (item: Item) =>
    'innocent' in item || (IN_FILE_NAMES.includes(item.sensitive.type) && !/[/\\]/.test(item.sensitive.text))
  if (!items.every(fits)) return ticket(random, items, language)
  const text = new LabelledText()
  for (const item of items) {
    text.add(`-rw-r--r-- 1 ana ana ${random.integer(100, 99_999)} May ${random.integer(10, 28)} `)
    text.add(`${keyOf(random, item)}${random.pick(['_', '-', ' '])}`)
    addItem(text, item)
    text.add(
      `${random.pick(['', '', '_1', '_signed', '-scan', '-2'])}.${random.pick(['pdf', 'jpg', 'txt', 'tar.gz'])}\n`,
    )
  }
  return text.sample('files')
}

const SETTINGS: readonly Setting[] = [
  mail, mail, chat, chat, ticket, jsonRow, csvRows, program, log, files,
] // biome-ignore format: a list

/** Puts items into a text of some kind. @param index takes settings in turn, so that each is met. */
export function settle(
  random: SeededRandom,
  items: readonly Item[],
  language: Language,
  index: number,
): Sample {
  const turn = index + Math.floor(index / SETTINGS.length)
  const setting = SETTINGS[turn % SETTINGS.length] ?? mail
  return setting(random, items, language)
}

/** A chat line that names a value after it. */
export function namedAfter(random: SeededRandom, value: SensitiveValue): Sample {
  const text = new LabelledText().add(`[09:${random.padded(10, 59, 2)}] Sam: `)
  text.sentence(random.pick(NAMED_AFTER), random.pick(value.names.en), value)
  return text.add(` ${random.pick(PHRASES.en.fillers)}`).sample('named after')
}
