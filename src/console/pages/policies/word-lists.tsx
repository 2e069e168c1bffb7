import { Button } from '../../design/button.tsx'
import { Section } from '../../design/section.tsx'
import styles from './policies.module.css'
import type { PolicyContent } from './policy-draft.ts'
import type { Change } from './policy-editor.tsx'
import { TEXT } from './text.ts'

type WordsProps = { content: PolicyContent; change: Change; canChange: boolean }

/** Dictionaries and patterns of the policy. A rule names them by their ids. */
export function WordLists({ content, change, canChange }: WordsProps) {
  const { dictionaries, patterns } = content
  const setDictionary = (id: string, terms: string[] | null) =>
    change({
      dictionaries: dictionaries.flatMap((each) =>
        each.id !== id ? [each] : terms === null ? [] : [{ ...each, terms }],
      ),
    })
  const setPattern = (id: string, pattern: string | null) =>
    change({
      patterns: patterns.flatMap((each) =>
        each.id !== id ? [each] : pattern === null ? [] : [{ ...each, pattern }],
      ),
    })
  return (
    <Section title={TEXT.words}>
      {dictionaries.length + patterns.length === 0 && <p className={styles.none}>{TEXT.noWords}</p>}
      {dictionaries.map(({ id, terms, ignore_case: ignoresCase }) => (
        <div key={id} className={styles.words}>
          <label>
            {TEXT.dictionary(id)}
            {ignoresCase && ` · ${TEXT.ignoreCase}`}
            <textarea
              rows={Math.min(8, terms.length + 1)}
              value={terms.join('\n')}
              readOnly={!canChange}
              spellCheck={false}
              onChange={({ target }) => setDictionary(id, target.value.split('\n'))}
            />
          </label>
          {canChange && <RemoveWords id={id} remove={() => setDictionary(id, null)} />}
        </div>
      ))}
      {patterns.map(({ id, pattern }) => (
        <div key={id} className={styles.words}>
          <label>
            {TEXT.pattern(id)}
            <textarea
              rows={1}
              value={pattern}
              readOnly={!canChange}
              spellCheck={false}
              onChange={({ target }) => setPattern(id, target.value)}
            />
          </label>
          {canChange && <RemoveWords id={id} remove={() => setPattern(id, null)} />}
        </div>
      ))}
      {canChange && <AddWords content={content} change={change} />}
    </Section>
  )
}

const RemoveWords = ({ id, remove }: { id: string; remove: () => void }) => (
  <Button look="plain" onClick={remove} aria-label={TEXT.removeWords(id)}>
    {TEXT.remove}
  </Button>
)

/** A new list begins with its rule, so that it does something. */
function AddWords({ content, change }: Pick<WordsProps, 'content' | 'change'>) {
  const taken = new Set([...content.dictionaries, ...content.patterns].map(({ id }) => id))
  const free = (noun: string) => {
    let number = 1
    while (taken.has(`${noun}-${number}`)) number += 1
    return `${noun}-${number}`
  }
  const withRule = (id: string) => [...content.rules, { custom: id, action: 'warn' as const }]
  const addDictionary = () => {
    const id = free('words')
    const dictionary = { id, terms: ['Blue Moon'], ignore_case: true, score: 1 }
    change({ dictionaries: [...content.dictionaries, dictionary], rules: withRule(id) })
  }
  const addPattern = () => {
    const id = free('pattern')
    const pattern = { id, pattern: 'PRJ-[0-9]{4}', ignore_case: false, score: 1 }
    change({ patterns: [...content.patterns, pattern], rules: withRule(id) })
  }
  return (
    <p className={styles.line}>
      <Button onClick={addDictionary}>{TEXT.addDictionary}</Button>
      <Button onClick={addPattern}>{TEXT.addPattern}</Button>
    </p>
  )
}
