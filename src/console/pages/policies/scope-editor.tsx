import { useState } from 'react'
import { Button } from '../../design/button.tsx'
import { Field } from '../../design/field.tsx'
import { Facts, Section } from '../../design/section.tsx'
import styles from './policies.module.css'
import type { Direction, PolicyContent } from './policy-draft.ts'
import type { Change } from './policy-editor.tsx'
import { TEXT } from './text.ts'

const DIRECTIONS = Object.keys(TEXT.direction) as Direction[]
const SCOPES = Object.keys(TEXT.scopes) as Array<keyof typeof TEXT.scopes>

type ScopeProps = {
  content: PolicyContent
  change: Change
  canChange: boolean
  /** Names in the scope that no longer exist. */
  stale: readonly string[]
}

/** For which calls a policy holds, in which directions, and what it does with what it cannot read. */
export function ScopeEditor({ content, change, canChange, stale }: ScopeProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <Section title={TEXT.scope}>
      <Facts
        facts={[
          [
            TEXT.callers,
            <>
              {scopeText(content)}{' '}
              {canChange && (
                <Button look="plain" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
                  {TEXT.editScope}
                </Button>
              )}
            </>,
          ],
          [TEXT.directions, <Directions key="directions" {...{ content, change, canChange }} />],
          [TEXT.uninspectable, <Uninspectable key="uninspectable" {...{ content, change, canChange }} />],
        ]}
      />
      {stale.length > 0 && <p className={styles.none}>{TEXT.stale(stale.join(', '))}</p>}
      {isOpen &&
        SCOPES.map((name) => (
          <Field
            key={name}
            label={`${TEXT.scopes[name]}. ${TEXT.scopeHint}.`}
            defaultValue={content.scope[name]?.join(' ') ?? ''}
            onChange={({ target }) => {
              const ids = target.value.split(/[\s,]+/).filter(Boolean)
              const { [name]: _, ...others } = content.scope
              change({ scope: ids.length === 0 ? others : { ...others, [name]: ids } })
            }}
          />
        ))}
    </Section>
  )
}

function scopeText({ scope }: PolicyContent): string {
  const narrowed = SCOPES.flatMap((name) => {
    const ids = scope[name]
    return ids === undefined ? [] : [`${TEXT.scopes[name].toLowerCase()} ${ids.join(', ')}`]
  })
  return narrowed.length === 0 ? TEXT.everybody : narrowed.join(' · ')
}

type PartProps = Omit<ScopeProps, 'stale'>

function Directions({ content, change, canChange }: PartProps) {
  const { directions } = content
  const toggle = (direction: Direction) =>
    change({
      directions: DIRECTIONS.filter((each) =>
        each === direction ? !directions.includes(each) : directions.includes(each),
      ),
    })
  return (
    <span className={styles.line}>
      {DIRECTIONS.map((direction) => (
        <label key={direction} className={styles.check}>
          <input
            type="checkbox"
            checked={directions.includes(direction)}
            disabled={!canChange || (directions.length === 1 && directions[0] === direction)}
            onChange={() => toggle(direction)}
          />
          {TEXT.direction[direction]}
        </label>
      ))}
    </span>
  )
}

/** Results of tools are blocked where nothing else is said. */
const treatmentOf = ({ uninspectable }: PolicyContent, direction: Direction) =>
  uninspectable[direction] ?? (direction === 'tool_result' ? 'block' : 'allow')

function Uninspectable({ content, change, canChange }: PartProps) {
  return (
    <span className={styles.line} title={TEXT.uninspectableHint}>
      {content.directions.map((direction) => (
        <label key={direction} className={styles.check}>
          {TEXT.direction[direction]}
          <select
            disabled={!canChange}
            value={treatmentOf(content, direction)}
            onChange={({ target }) =>
              change({
                uninspectable: { ...content.uninspectable, [direction]: target.value as 'allow' | 'block' },
              })
            }
          >
            <option value="allow">{TEXT.allow}</option>
            <option value="block">{TEXT.block}</option>
          </select>
        </label>
      ))}
    </span>
  )
}
