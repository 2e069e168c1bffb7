import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { AnswerOf } from '../../../client/management-client.ts'
import {
  creditText,
  durationParts,
  durationText,
  numberText,
  percentText,
  roundCreditText,
  timeText,
} from '../../data/format.ts'
import type { Me } from '../../data/me.ts'
import { nameOf, useNames } from '../../data/names.ts'
import { OUTCOMES } from '../../data/outcomes.ts'
import { useSpendADay } from '../../data/spend.ts'
import { useZone } from '../../data/zone.ts'
import { Section } from '../../design/section.tsx'
import { Sparkline } from '../../design/sparkline.tsx'
import type { Look } from '../../design/state.tsx'
import styles from './home.module.css'
import { TEXT } from './text.ts'

export type Overview = AnswerOf<'overview.show'>

const sumOf = (counts: Overview['today'] | Overview['hours'][number]): number =>
  OUTCOMES.reduce((sum, outcome) => sum + counts[outcome], 0)

interface Figure {
  name: string
  value: string
  unit?: string
  detail: string
  values: Array<number | null>
  look?: Look
  /** The filter of its rows. */
  q?: string
}

/** Six figures of today, each with its line of 24 hours and a link to its rows. */
export function DayFigures({ me, overview }: { me: Me; overview: Overview }) {
  const [zone] = useZone()
  const figures = useFigures(me, overview)
  const { from } = overview.today
  const isCut = Date.parse(overview.complete_from) > Date.parse(from)
  return (
    <Section
      title={TEXT.today}
      note={TEXT.since('UTC')}
      end={
        <Link to="/$slug/calls" params={{ slug: me.organization.slug }} search={{ from }}>
          {TEXT.showCalls}
        </Link>
      }
    >
      <div className={styles.figures}>
        {figures.map((figure) => (
          <FigureLink key={figure.name} figure={figure} slug={me.organization.slug} from={from} />
        ))}
      </div>
      {isCut && <p className={styles.nothing}>{TEXT.counted(timeText(overview.complete_from, zone))}</p>}
    </Section>
  )
}

function FigureLink({ figure, slug, from }: { figure: Figure; slug: string; from: string }): ReactNode {
  const { name, value, unit, detail, values, look = 'quiet', q } = figure
  return (
    <Link to="/$slug/calls" params={{ slug }} search={{ from, ...(q && { q }) }}>
      <span className={styles.name}>{name}</span>
      <span className={styles.value} data-look={value === '0' ? undefined : look}>
        {value} {unit && <small>{unit}</small>}
      </span>
      <Sparkline values={values} look={look} />
      <span className={styles.detail} title={detail}>
        {detail}
      </span>
    </Link>
  )
}

function useFigures(me: Me, overview: Overview): Figure[] {
  const names = useNames(me)
  const aDay = useSpendADay(me)
  const { today, hours, failed_at: failedAt, refused_to: refusedTo, blocked_by: blockedBy } = overview
  const calls = sumOf(today)
  const first = today.first_event_ms
  const [median, unit] = first === null ? ['–', ''] : durationParts(first.p50)
  return [
    {
      name: TEXT.figures.calls,
      value: numberText(calls),
      detail: TEXT.weekBefore(numberText(overview.week_before)),
      values: hours.map(sumOf),
    },
    {
      name: TEXT.figures.failed,
      value: numberText(today.failed),
      unit: percentText(today.failed, calls),
      detail: failedAt === null ? TEXT.none : TEXT.failedAt(numberText(failedAt.count), failedAt.provider),
      values: hours.map(({ failed }) => failed),
      look: 'failed',
      q: 'outcome:failed',
    },
    {
      name: TEXT.figures.refused,
      value: numberText(today.refused),
      unit: percentText(today.refused, calls),
      detail:
        refusedTo === null
          ? TEXT.none
          : TEXT.refusedTo(numberText(refusedTo.count), nameOf(names, refusedTo.user_id)),
      values: hours.map(({ refused }) => refused),
      look: 'warn',
      q: 'outcome:refused',
    },
    {
      name: TEXT.figures.blocked,
      value: numberText(today.blocked),
      detail: blockedBy.map(({ detector, count }) => `${detector} ${count}`).join(' · ') || TEXT.none,
      values: hours.map(({ blocked }) => blocked),
      look: 'held',
      q: 'outcome:blocked',
    },
    {
      name: TEXT.figures.first,
      value: median,
      unit: first === null ? '' : `${unit}, ${TEXT.median}`,
      detail: first === null ? TEXT.noStream : TEXT.atThe95th(durationText(first.p95)),
      values: hours.map(({ first_event_ms: time }) => time),
    },
    {
      name: TEXT.figures.spent,
      value: roundCreditText(today.cost),
      unit: TEXT.credits,
      detail: aDay === null ? creditText(today.cost) : TEXT.aDay(roundCreditText(aDay)),
      values: hours.map(({ cost }) => cost),
      look: 'live',
    },
  ]
}
