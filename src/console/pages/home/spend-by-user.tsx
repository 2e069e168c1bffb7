import { Link } from '@tanstack/react-router'
import { numberText, plural } from '../../data/format.ts'
import type { Me } from '../../data/me.ts'
import { nameOf, useNames } from '../../data/names.ts'
import { Credits } from '../../design/credits.tsx'
import { Section } from '../../design/section.tsx'
import { Table } from '../../design/table.tsx'
import type { Overview } from './day-figures.tsx'
import styles from './home.module.css'
import { TEXT } from './text.ts'

/** Who has spent the most today; the rest as one row, so that the rows add up to the figure above. */
export function SpendByUser({ me, overview }: { me: Me; overview: Overview }) {
  const names = useNames(me)
  const { spend, others, today } = overview
  const { spendHeads: heads } = TEXT
  const most = Math.max(1, ...spend.map(({ cost }) => cost), others.cost)
  return (
    <Section title={TEXT.spend} note={TEXT.ofToday}>
      {spend.length === 0 ? (
        <p className={styles.nothing}>{TEXT.noSpend}</p>
      ) : (
        <Table
          caption={TEXT.spend}
          stack="plain"
          heads={[
            { text: heads.user },
            { text: heads.calls, isFigure: true, width: 72 },
            { text: heads.credits, isFigure: true, width: 104 },
            { text: heads.share, width: 180 },
          ]}
        >
          {spend.map(({ user_id: id, calls, cost }) => (
            <tr key={id ?? ''}>
              <td data-place="a2">
                {id === null ? (
                  TEXT.noUser
                ) : (
                  <Link
                    to="/$slug/calls"
                    params={{ slug: me.organization.slug }}
                    search={{ q: `user:${id}`, from: today.from }}
                  >
                    {nameOf(names, id)}
                  </Link>
                )}
              </td>
              <Amounts calls={calls} cost={cost} most={most} />
            </tr>
          ))}
          {others.users > 0 && (
            <tr>
              <td data-place="a2">{plural(others.users, TEXT.other)}</td>
              <Amounts calls={others.calls} cost={others.cost} most={most} />
            </tr>
          )}
        </Table>
      )}
    </Section>
  )
}

function Amounts({ calls, cost, most }: { calls: number; cost: number; most: number }) {
  return (
    <>
      <td data-place="b3" data-figure="">
        {numberText(calls)}
      </td>
      <td data-place="a3" data-figure="">
        <Credits micro={cost} />
      </td>
      <td>
        <span className={styles.share}>
          <i style={{ width: `${(100 * cost) / most}%` }} />
        </span>
      </td>
    </>
  )
}
