import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { call } from '../../data/client.ts'
import { numberText } from '../../data/format.ts'
import type { Me } from '../../data/me.ts'
import { Button } from '../../design/button.tsx'
import { Failure } from '../../design/notice.tsx'
import { Section } from '../../design/section.tsx'
import { Table } from '../../design/table.tsx'
import styles from './policies.module.css'
import type { PolicyContent } from './policy-draft.ts'
import { ActionText } from './rule-table.tsx'
import { TEXT } from './text.ts'

/** Counts what the draft would find in many samples. */
export function DryRun({ me, content }: { me: Me; content: PolicyContent }) {
  const [text, setText] = useState('')
  const { name: _, ...policy } = content
  const count = useMutation({
    mutationFn: () =>
      call('policies.dry-run', {
        path: { organizationId: me.organization.id },
        body: { policy, samples: text.split('\n').filter((line) => line.trim() !== '') },
      }),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    count.mutate()
  }
  const { dryHeads: heads } = TEXT
  return (
    <Section title={TEXT.dryTitle} note={TEXT.dryHint}>
      <form className={styles.words} onSubmit={submit}>
        <label>
          {TEXT.samples}
          <textarea
            rows={6}
            value={text}
            spellCheck={false}
            onChange={({ target }) => setText(target.value)}
          />
        </label>
        <Button look="main" type="submit" disabled={text.trim() === '' || count.isPending}>
          {TEXT.runDry}
        </Button>
      </form>
      {count.error && <Failure error={count.error} />}
      {count.data && (
        <>
          <p role="status">
            {TEXT.counted(
              numberText(count.data.with_findings),
              numberText(count.data.blocked),
              numberText(count.data.samples),
            )}
          </p>
          <Table
            caption={TEXT.dryTitle}
            heads={[
              { text: heads.detector },
              { text: heads.action, width: 120 },
              { text: heads.count, isFigure: true, width: 100 },
            ]}
          >
            {count.data.findings.map((finding) => (
              <tr key={`${finding.detector} ${finding.action}`}>
                <td>{finding.detector}</td>
                <td>
                  <ActionText action={finding.action} />
                </td>
                <td data-figure="">{numberText(finding.count)}</td>
              </tr>
            ))}
          </Table>
        </>
      )}
    </Section>
  )
}
