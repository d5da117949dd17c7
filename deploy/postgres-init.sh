#!/bin/bash
# The PostgreSQL image runs this once. It creates a database and a user for Airflow, and both for the lake's catalog. psql reads
# passwords from its environment, so no process has them in its arguments.
set -euo pipefail
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" <<'SQL'
\getenv airflow_password AIRFLOW_DB_PASSWORD
\getenv lake_password LAKE_DB_PASSWORD
CREATE USER airflow PASSWORD :'airflow_password';
CREATE DATABASE airflow OWNER airflow;
CREATE USER durability PASSWORD :'lake_password';
CREATE DATABASE durability OWNER durability;
SQL
