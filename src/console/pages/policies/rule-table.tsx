import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../../data/client.ts'
import type { Me } from '../../data/me.ts'
import { Button } from '../../design/button.tsx'
import { Section } from '../../design/section.tsx'
import { Table } from '../../design/table.tsx'
import styles from './policies.module.css'
import { type Action, keyOf, type PolicyContent, type Rule, subjectOf } from './policy-draft.ts'
import type { Change } from './policy-editor.tsx'
import { TEXT } from './text.ts'

const ACTIONS: readonly Action[] = ['allow', 'warn', 'mask', 'redact', 'tokenise', 'block']

type RulesProps = {
  me: Me
  /** The form in force, of which rules that differ are marked. */
  base: PolicyContent
  content: PolicyContent
  change: Change
  canChange: boolean
}

/** What is found, from which score on, and what happens then. */
export function RuleTable({ me, base, content, change, canChange }: RulesProps) {
  const { rules } = content
  const { ruleHeads: heads } = TEXT
  const before = new Set(base.rules.map((rule) => JSON.stringify(rule)))
  const replace = (index: number, rule: Rule | null) =>
    change({ rules: rules.flatMap((each, at) => (at === index ? (rule ? [rule] : []) : [each])) })
  return (
    <Section title={TEXT.rules} note={TEXT.severe}>
      {rules.length === 0 ? (
        <p className={styles.none}>{TEXT.noRules}</p>
      ) : (
        <Table
          caption={TEXT.rules}
          stack="plain"
          isNarrow
          heads={[
            { text: heads.kind, width: 84 },
            { text: heads.rule },
            { text: heads.minimum, isFigure: true, width: 80 },
            { text: heads.action, width: 116 },
            ...(canChange ? [{ text: heads.remove, width: 84 }] : []),
          ]}
        >
          {rules.map((rule, index) => (
            <RuleRow
              key={keyOf(rule)}
              rule={rule}
              isDraft={!before.has(JSON.stringify(rule))}
              replace={canChange ? (next) => replace(index, next) : null}
            />
          ))}
        </Table>
      )}
      {canChange && <AddRule me={me} content={content} change={change} />}
    </Section>
  )
}

type RowProps = { rule: Rule; isDraft: boolean; replace: ((rule: Rule | null) => void) | null }

function RuleRow({ rule, isDraft, replace }: RowProps) {
  const [kind = ''] = keyOf(rule).split(' ')
  const subject = subjectOf(rule)
  const minimum = rule.minimum_score
  const setMinimum = (text: string) => {
    const { minimum_score: _, ...rest } = rule
    replace?.(text === '' ? rest : { ...rest, minimum_score: Number(text) })
  }
  return (
    <tr data-draft={isDraft ? '' : undefined}>
      <td className={styles.dim} data-place="b2">
        {kind}
      </td>
      <td data-place="a2">
        {subject} {rule.category !== undefined && <span className={styles.dim}>{TEXT.every}</span>}
      </td>
      <td data-figure="" data-place="b3">
        {replace === null ? (
          (minimum ?? TEXT.own)
        ) : (
          <input
            className={styles.score}
            type="number"
            min={0}
            max={1}
            step={0.05}
            value={minimum ?? ''}
            placeholder={TEXT.own}
            aria-label={TEXT.minimumOf(subject)}
            onChange={({ target }) => setMinimum(target.value)}
          />
        )}
      </td>
      <td data-place="a3">
        {replace === null ? (
          <ActionText action={rule.action} />
        ) : (
          <select
            className={styles.action}
            data-action={rule.action}
            value={rule.action}
            aria-label={TEXT.actionOf(subject)}
            onChange={({ target }) => replace({ ...rule, action: target.value as Action })}
          >
            {ACTIONS.map((action) => (
              <option key={action}>{action}</option>
            ))}
          </select>
        )}
      </td>
      {replace !== null && (
        <td data-place="c">
          <Button look="plain" onClick={() => replace(null)} aria-label={TEXT.removeRule(subject)}>
            {TEXT.remove}
          </Button>
        </td>
      )}
    </tr>
  )
}

export const ActionText = ({ action }: { action: Action }) => (
  <span className={styles.actionText} data-action={action}>
    {action}
  </span>
)

/** Detectors, categories and words of this policy that have no rule yet. */
function AddRule({ me, content, change }: Pick<RulesProps, 'me' | 'content' | 'change'>) {
  const [chosen, choose] = useState('')
  const detectors = useQuery({
    queryKey: ['detectors', me.organization.id],
    queryFn: () => call('detectors.list', {}),
    staleTime: Number.POSITIVE_INFINITY,
  })
  const listed = detectors.data?.data ?? []
  const categories = [...new Set(listed.map(({ category }) => category))]
  const custom = [...content.dictionaries, ...content.patterns].map(({ id }) => id)
  const taken = new Set(content.rules.map(keyOf))
  const offered = [
    ...categories.map((id) => `category ${id}`),
    ...listed.map(({ id }) => `detector ${id}`),
    ...custom.map((id) => `custom ${id}`),
  ].filter((key) => !taken.has(key))
  const add = () => {
    const [kind = '', id = ''] = chosen.split(' ')
    if (id === '') return
    change({ rules: [...content.rules, { [kind]: id, action: 'redact' } as Rule] })
    choose('')
  }
  return (
    <p className={styles.line}>
      <select aria-label={TEXT.addRule} value={chosen} onChange={({ target }) => choose(target.value)}>
        <option value="">{TEXT.addRule}</option>
        {offered.map((key) => (
          <option key={key} value={key}>
            {key}
          </option>
        ))}
      </select>
      <Button onClick={add} disabled={chosen === ''}>
        {TEXT.addRule}
      </Button>
    </p>
  )
}
